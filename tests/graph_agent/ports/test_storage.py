import json
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from graph_agent.ports import JournalRow, RowStatus, SystemClock
from graph_agent.ports.storage import moved_sub_agent_id, sub_agent_id
from graph_agent.ports.stored_text import index_text, plain_text, searchable


def test_the_time_is_utc_with_milliseconds_and_a_z() -> None:
    before = datetime.now(UTC)

    text = SystemClock().now()

    now = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert len(text) == len("2026-11-28T00:12:03.456Z")
    assert before - timedelta(milliseconds=1) <= now <= datetime.now(UTC)


def test_a_sub_agent_has_the_same_place_under_another_parent_and_none_under_another_call() -> None:
    first, third = sub_agent_id("p", "c", 0), sub_agent_id("p", "c", 2)

    assert len({first, third, sub_agent_id("q", "c", 0), sub_agent_id("p", "d", 0)}) == 4
    assert moved_sub_agent_id(first, "c", 0, ("p", "q")) == sub_agent_id("q", "c", 0)
    assert moved_sub_agent_id(third, "c", 2, ("p", "q")) == sub_agent_id("q", "c", 2)
    assert moved_sub_agent_id(third, "c", 1, ("p", "q")) is None
    assert moved_sub_agent_id(first, "d", 9, ("p", "q")) is None


def test_only_a_recorded_outcome_makes_a_row_finished_and_only_not_started_never_ran() -> None:
    rows = [JournalRow("c1", 1, "run", status, "2026-11-28T00:00:00.000Z") for status in get_args(RowStatus)]

    assert {row.status for row in rows if row.is_finished} == {"success", "error"}
    assert {row.status for row in rows if not row.may_have_started} == {"not_started"}


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


def test_a_message_is_found_by_its_text_and_by_the_calls_it_asks_for() -> None:
    calls = [{"id": "call_1", "name": "edit_file", "args": {"path": "a.py", "edits": [{"old": "x"}], "all": True}}]

    assert searchable(json.dumps({"content": "on it", "tool_calls": calls})) == "on it\nedit_file a.py x"


@pytest.mark.parametrize("body", ["", "{", "[]", "7", '{"tool_calls": 7}', '{"tool_calls": [7]}'])
def test_an_odd_body_holds_nothing(body: str) -> None:
    assert searchable(body).strip() == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [(f"a {'f0' * 500} b", ["a", "f0" * 16, "b"]), ("部署deploy完成", ["deploy"])],
    ids=["the beginning of a word without end", "a word between other scripts"],
)
def test_the_index_holds_words_of_letters_and_digits(content: str, words: list[str]) -> None:
    assert index_text(json.dumps({"content": content})).split() == words
