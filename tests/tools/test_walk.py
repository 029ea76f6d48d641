import random

from tools.walk import FoundFile, NewestFiles


def test_of_very_many_the_newest_are_kept_in_their_order_and_all_are_counted() -> None:
    files = [FoundFile(-(at // 3), f"{at}", f"/w/{at}") for at in range(5_000)]
    random.Random(4).shuffle(files)
    newest = NewestFiles(10)
    for file in files:
        newest.total += 1
        if file.age <= newest.oldest:
            newest.add(file)

    assert (newest.files(), newest.total) == (sorted(files)[:10], 5_000)


def test_fewer_than_wanted_are_all_there() -> None:
    newest = NewestFiles(3)
    newest.add(FoundFile(-1, "a", "/w/a"))
    newest.add(FoundFile(-2, "b", "/w/b"))

    assert [file.relative for file in newest.files()] == ["b", "a"]
