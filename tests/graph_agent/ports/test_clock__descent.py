from graph_agent.ports.storage import moved_sub_agent_id, sub_agent_id


def test_a_sub_agent_keeps_its_place_under_another_parent_and_none_of_another_call_is_taken_along() -> None:
    first, third = sub_agent_id("p", "c", 0), sub_agent_id("p", "c", 2)

    assert len({first, third, sub_agent_id("q", "c", 0), sub_agent_id("p", "d", 0)}) == 4
    assert moved_sub_agent_id(first, "c", 0, ("p", "q")) == sub_agent_id("q", "c", 0)
    assert moved_sub_agent_id(third, "c", 2, ("p", "q")) == sub_agent_id("q", "c", 2)
    assert (moved_sub_agent_id(third, "c", 1, ("p", "q")), moved_sub_agent_id(first, "d", 9, ("p", "q"))) == (
        None,
        None,
    )
