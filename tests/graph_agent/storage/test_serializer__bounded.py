from graph_agent.storage.serializer import BoundedCache


def test_what_was_not_asked_for_longest_goes_first() -> None:
    kept: BoundedCache[str, int] = BoundedCache(10)
    kept.put("a", 1, 4)
    kept.put("b", 2, 4)

    kept.get("a")
    kept.put("c", 3, 4)

    assert [kept.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_that_is_put_again_is_weighed_once_and_one_that_is_too_heavy_is_not_kept() -> None:
    kept: BoundedCache[str, int] = BoundedCache(10)

    values = [kept.put("a", number, 8) for number in range(3)]
    heavy = kept.put("b", 9, 11)

    assert (values, heavy) == ([0, 1, 2], 9)
    assert [kept.get(key) for key in "ab"] == [2, None]
    kept.put("c", 3, 10)
    assert [kept.get(key) for key in "ac"] == [None, 3]
