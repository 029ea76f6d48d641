import io
import time

import pytest
from rich.console import Console

from graph_agent.cli.render.running import RunningCalls


def test_away_from_a_terminal_it_keeps_time_and_draws_nothing() -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream))

    running.begin("c1", "bash ls")
    running.tell("c1", "out\n")
    running.draw()

    assert (running.end("c1") is not None, running.end("c1"), stream.getvalue()) == (True, None, "")


def test_on_a_terminal_the_last_line_is_shown_and_taken_off_again() -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream, force_terminal=True, width=60, color_system=None))

    running.begin("c1", "bash ls")
    running.tell("c1", "first\nlast [bold]\n\n")
    running.draw()
    drawn = stream.getvalue()
    running.end("c1")

    assert "… bash ls  0 s  last [bold]" in drawn
    assert "first" not in drawn
    assert stream.getvalue().endswith("\x1b[1A\x1b[2K")


def test_output_without_room_beside_a_long_command_stands_on_a_line_of_its_own() -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream, force_terminal=True, width=40, color_system=None))

    running.begin("c1", f"bash $ {'long ' * 20}")
    running.tell("c1", "12 of 300 tests have passed until now\n")
    running.draw()

    assert "… bash $ long long long long lo…  0 s\n  │ 12 of 300 tests have passed until …" in stream.getvalue()


def test_a_dumb_terminal_gets_no_cursor_movement() -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream, force_terminal=True, _environ={"TERM": "dumb"}))

    running.begin("c1", "bash ls")

    assert stream.getvalue() == ""


def test_what_is_waited_for_gets_a_line_when_it_does_not_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream, force_terminal=True, width=60, color_system=None))

    running.wait("m", "waiting for the model")
    running.draw()
    at_once = stream.getvalue()
    later = time.monotonic() + 12
    monkeypatch.setattr("time.monotonic", lambda: later)
    running.draw()

    assert (at_once, "… waiting for the model  12 s" in stream.getvalue()) == ("", True)


def test_what_is_tried_again_later_is_counted_down_and_then_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    running = RunningCalls(Console(file=stream, force_terminal=True, width=60, color_system=None))
    began = time.monotonic()

    running.wait("m", "asking again", 8.2)
    for passed in (1.5, 12.5):
        monkeypatch.setattr("time.monotonic", lambda passed=passed: began + passed)
        running.draw()

    assert [words in stream.getvalue() for words in ("asking again  in 7 s", "asking again  4 s")] == [True, True]
