from typing import Any

import pytest

from graph_agent.ports.checkpoint_values import are_messages, is_message, planned_nodes, planned_tasks, role_of


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"type": "ai", "content": ""}, True),
        ({"type": "AIMessageChunk", "content": "a"}, True),
        ({"role": "user", "content": "a"}, True),
        ({"type": "text", "content": "a"}, False),
        ({"role": "owner", "content": "a"}, False),
        ({"type": "human"}, False),
        ("human", False),
    ],
)
def test_a_message_has_a_role_and_a_content(value: Any, is_one: bool) -> None:
    assert is_message(value) == is_one


def test_a_conversation_is_a_list_of_messages_and_of_nothing_else() -> None:
    message = {"type": "human", "content": "a"}

    assert [are_messages(value) for value in ([message], [message, 1], [], None)] == [True, False, False, False]


def test_roles_are_named_in_the_words_of_the_protocol() -> None:
    kinds = [{"type": "human"}, {"type": "AIMessageChunk"}, {"type": "tool"}, {"role": "user"}]

    assert [role_of(kind) for kind in kinds] == ["user", "assistant", "tool", "user"]


def leading_to(*channels: str, seen: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    return {
        "channel_values": {**dict.fromkeys(channels), **values},
        "channel_versions": dict.fromkeys((*channels, *values), 2),
        "versions_seen": seen or {},
    }


def joined(*names: str) -> dict[str, Any]:
    return {"__type__": "builtins.set", "value": list(names)}


def test_an_edge_triggers_a_node_until_the_node_has_seen_it() -> None:
    new, seen = leading_to("branch:to:plan"), leading_to("branch:to:plan", seen={"plan": {"branch:to:plan": 2}})

    assert [planned_nodes(checkpoint) for checkpoint in (new, seen)] == [("plan",), ()]


def test_a_node_that_waits_for_several_runs_once_all_have_come() -> None:
    some = leading_to(**{"join:a+b:c": joined("b")})
    both = leading_to(**{"join:a+b:c": joined("b", "a")})

    assert [planned_nodes(checkpoint) for checkpoint in (some, both)] == [(), ("c",)]


def test_packets_come_first_each_a_task_of_its_own_and_input_is_no_node() -> None:
    packet = {"__type__": "langgraph.types.Send", "value": ["work", {"n": 1}]}
    checkpoint = leading_to("branch:to:plan", __start__={"n": 2}, __pregel_tasks=[packet, packet])

    assert [(task.path, task.node, task.given) for task in planned_tasks(checkpoint)] == [
        ("~__pregel_push, 0000000000", "work", {"n": 1}),
        ("~__pregel_push, 0000000001", "work", {"n": 1}),
        ("~__pregel_pull, __start__", "__start__", {"n": 2}),
        ("~__pregel_pull, plan", "plan", None),
    ]
    assert planned_nodes(checkpoint) == ("work", "plan")


def test_a_task_has_no_id_at_a_checkpoint_that_has_none() -> None:
    [task] = planned_tasks(leading_to("branch:to:plan"))

    assert task.id_at("first", 1) == ""
    assert len(task.id_at("1f1eb064-3852-614e-8002-25a6a3f25747", 1)) == 36
