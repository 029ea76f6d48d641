from typing import Any

import pytest

from graph_agent.inspect.checkpoint_values import are_messages, is_message, role_of


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


def test_roles_are_told_in_the_words_of_the_protocol() -> None:
    kinds = [{"type": "human"}, {"type": "AIMessageChunk"}, {"type": "tool"}, {"role": "user"}]

    assert [role_of(kind) for kind in kinds] == ["user", "assistant", "tool", "user"]
