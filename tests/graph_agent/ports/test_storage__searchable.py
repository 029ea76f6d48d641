import json
from typing import Any

import pytest

from graph_agent.ports.storage import index_text, plain_text, searchable


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        (["a", {"type": "text", "text": "b"}], "ab"),
        ({"type": "image"}, "[image]"),
        (None, ""),
        (7, "7"),
    ],
)
def test_every_form_of_a_content_becomes_text(content: Any, text: str) -> None:
    assert plain_text(content) == text


def test_a_message_is_found_by_what_it_says_and_by_the_calls_it_asks_for() -> None:
    calls = [{"id": "call_1", "name": "edit_file", "args": {"path": "a.py", "edits": [{"old": "x"}], "all": True}}]

    assert searchable(json.dumps({"content": "on it", "tool_calls": calls})) == "on it\nedit_file a.py x"


@pytest.mark.parametrize("body", ["", "{", "[]", "7", '{"tool_calls": 7}', '{"tool_calls": [7]}'])
def test_an_odd_body_holds_nothing(body: str) -> None:
    assert searchable(body).strip() == ""


def test_of_a_word_without_end_the_index_holds_the_beginning() -> None:
    assert index_text(json.dumps({"content": f"a {'f0' * 500} b"})) == f"a {'f0' * 16} b"


def test_words_beside_other_scripts_stand_alone_in_the_index() -> None:
    assert index_text(json.dumps({"content": "部署deploy完成"})).split() == ["deploy"]
