from graph_agent.ports.usage import Budget, Purse, Used


def _used(tokens: int, requests: int = 1) -> Used:
    usage = {"total_tokens": tokens, "requests": requests}
    return Used(usage, usage)


def test_what_all_of_them_used_is_added_up_with_what_is_asked_for_at_this_moment() -> None:
    purse = Purse(Budget(), 50)
    purse.begin(
        "p", Used({"total_tokens": 10, "requests": 1}, {"total_tokens": 100, "requests": 7}), 1, {"c1", "c2"}
    )
    purse.join("a", "p", "c1", _used(1))
    purse.join("b", "p", "c2", Used())
    purse.note("b", _used(2, 3))
    purse.ask("a", (1_000, None))

    asking = (purse.used().turn["total_tokens"], purse.used().thread["total_tokens"], purse.steps)
    purse.answered("a")

    assert asking == (1_013, 1_103, 6)
    assert (purse.used().turn, purse.steps) == ({"total_tokens": 13, "requests": 5}, 5)


def test_who_has_ended_counts_until_a_state_above_tells_it_and_then_no_more() -> None:
    purse = Purse(Budget(), 50)
    purse.begin("p", Used(), 1, {"c1"})
    purse.join("a", "p", "c1", _used(1))
    purse.join("deep", "a", "c9", _used(5))
    purse.leave("deep")
    ended = purse.used().turn["total_tokens"]
    purse.note("a", _used(6))
    told = purse.used().turn["total_tokens"]
    purse.leave("a")
    purse.begin("p", Used(), 1, {"c1"})
    still_open = purse.used().turn["total_tokens"]
    purse.begin("p", _used(6), 1, ())

    assert (ended, told, still_open, purse.used().turn["total_tokens"]) == (6, 6, 6, 6)
