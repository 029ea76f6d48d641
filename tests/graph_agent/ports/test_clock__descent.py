from graph_agent.ports.clock import child_id, moved_child


def test_a_sub_agent_keeps_its_place_under_another_parent_and_none_of_another_call_is_taken_along() -> None:
    first, third = child_id("p", "c", 0), child_id("p", "c", 2)

    assert len({first, third, child_id("q", "c", 0), child_id("p", "d", 0)}) == 4
    assert moved_child(first, "c", 0, ("p", "q")) == child_id("q", "c", 0)
    assert moved_child(third, "c", 2, ("p", "q")) == child_id("q", "c", 2)
    assert (moved_child(third, "c", 1, ("p", "q")), moved_child(first, "d", 9, ("p", "q"))) == (None, None)
