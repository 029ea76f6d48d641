import pytest

from graph_agent.cli.chat import bell
from graph_agent.cli.chat.bell import Bell
from graph_agent.events import EventBus, TurnEnded, TurnStarted, TurnStatus


def _rung(*statuses: TurnStatus, is_wanted: bool = True) -> int:
    rings: list[str] = []
    bus = Bell(lambda: is_wanted, lambda: rings.append("ring")).on(EventBus())
    for status in statuses:
        bus.publish(TurnStarted("go"))
        bus.publish(TurnEnded(status))
    return len(rings)


def test_it_rings_when_a_question_waits_and_not_for_a_short_turn() -> None:
    assert _rung("done", "awaiting_approval", "stopped", "interrupted", "model_error") == 2


def test_it_rings_when_a_long_turn_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bell, "_LONG_SECONDS", 0.0)

    assert _rung("done", "model_error") == 2


def test_without_the_setting_it_is_silent() -> None:
    assert _rung("awaiting_approval", is_wanted=False) == 0


def test_the_bell_is_one_byte(capsys: pytest.CaptureFixture[str]) -> None:
    Bell(lambda: True)(1, TurnEnded("awaiting_approval"))

    assert capsys.readouterr().out == "\a"
