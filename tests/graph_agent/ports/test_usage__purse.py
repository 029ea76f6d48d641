from graph_agent.ports.usage import Budget, SharedBudget, UsageTotals


def _used(tokens: int, requests: int = 1) -> UsageTotals:
    usage = {"total_tokens": tokens, "requests": requests}
    return UsageTotals(usage, usage)


def test_what_all_of_them_used_is_added_up_with_what_is_asked_for_at_this_moment() -> None:
    shared_budget = SharedBudget(Budget(), 50)
    shared_budget.set_own_usage(
        "p", UsageTotals({"total_tokens": 10, "requests": 1}, {"total_tokens": 100, "requests": 7}), 1, {"c1", "c2"}
    )
    shared_budget.add_sub_agent("a", "p", "c1", _used(1))
    shared_budget.add_sub_agent("b", "p", "c2", UsageTotals())
    shared_budget.set_sub_agent_usage("b", _used(2, 3))
    shared_budget.begin_request("a", (1_000, None))

    asking = (
        shared_budget.total_usage().turn["total_tokens"],
        shared_budget.total_usage().thread["total_tokens"],
        shared_budget.steps,
    )
    shared_budget.end_request("a")

    assert asking == (1_013, 1_103, 6)
    assert (shared_budget.total_usage().turn, shared_budget.steps) == ({"total_tokens": 13, "requests": 5}, 5)


def test_who_has_ended_counts_until_a_state_above_tells_it_and_then_no_more() -> None:
    shared_budget = SharedBudget(Budget(), 50)
    shared_budget.set_own_usage("p", UsageTotals(), 1, {"c1"})
    shared_budget.add_sub_agent("a", "p", "c1", _used(1))
    shared_budget.add_sub_agent("deep", "a", "c9", _used(5))
    shared_budget.end_sub_agent("deep")
    ended = shared_budget.total_usage().turn["total_tokens"]
    shared_budget.set_sub_agent_usage("a", _used(6))
    told = shared_budget.total_usage().turn["total_tokens"]
    shared_budget.end_sub_agent("a")
    shared_budget.set_own_usage("p", UsageTotals(), 1, {"c1"})
    still_open = shared_budget.total_usage().turn["total_tokens"]
    shared_budget.set_own_usage("p", _used(6), 1, ())

    assert (ended, told, still_open, shared_budget.total_usage().turn["total_tokens"]) == (6, 6, 6, 6)
