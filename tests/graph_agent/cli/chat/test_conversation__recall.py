from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.chat.conversation import recent_lines
from tests.fakes.database_rows import Rows


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    written = Rows(tmp_path / "graph-agent.db")
    written.thread()
    written.message("system", {"content": "be good"})
    yield written
    written.close()


def test_the_last_two_turns_are_shown_with_their_results(rows: Rows) -> None:
    for number in (1, 2, 3):
        rows.message("user", {"content": f"question {number}"})
        rows.message("assistant", {"content": "", "tool_calls": [{"name": "ls", "id": f"c{number}", "args": {}}]})
        rows.message("tool", {"content": f"result {number} [red]\x1b[2J", "tool_call_id": f"c{number}"})

    assert recent_lines(rows.path, "t1") == [
        "… 3 earlier messages: /inspect or `graph-agent threads show`",
        "user",
        "  question 2",
        "assistant",
        "  → ls c2 {}",
        "tool c2",
        "  result 2 [red]\\x1b[2J",
        "user",
        "  question 3",
        "assistant",
        "  → ls c3 {}",
        "tool c3",
        "  result 3 [red]\\x1b[2J",
    ]


def test_a_short_conversation_is_shown_whole(rows: Rows) -> None:
    rows.message("user", {"content": "hi"})

    assert recent_lines(rows.path, "t1") == ["user", "  hi"]
