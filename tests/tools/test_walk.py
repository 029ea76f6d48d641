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

    few = NewestFiles(3)
    few.add(FoundFile(-1, "a", "/w/a"))
    few.add(FoundFile(-2, "b", "/w/b"))

    assert (newest.files(), newest.total) == (sorted(files)[:10], 5_000)
    assert [file.relative for file in few.files()] == ["b", "a"]
