from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.chat.chat import recent_lines
from graph_agent.cli.chat.turn_runner import Bell
from graph_agent.events import EventBus, TurnEnded, TurnStarted, TurnStatus
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


def _rings(capsys: pytest.CaptureFixture[str], *statuses: TurnStatus, is_wanted: bool = True) -> int:
    bus = EventBus()
    bus.subscribe(Bell(lambda: is_wanted))
    for status in statuses:
        bus.publish(TurnStarted("go"))
        bus.publish(TurnEnded(status))
    return capsys.readouterr().out.count("\a")


def test_the_bell_rings_when_a_question_waits_and_not_after_a_short_turn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _rings(capsys, "done", "awaiting_approval", "stopped", "interrupted", "model_error") == 2


def test_the_bell_rings_when_a_long_turn_has_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.cli.chat.turn_runner._LONG_TURN_S", 0.0)

    assert _rings(capsys, "done", "model_error") == 2


def test_without_the_setting_the_bell_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert _rings(capsys, "awaiting_approval", is_wanted=False) == 0
