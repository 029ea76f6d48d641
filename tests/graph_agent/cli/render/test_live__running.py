import time

import pytest

from graph_agent.cli.render.live_area import RunningCalls


def _lines(running: RunningCalls, width: int = 60) -> list[str]:
    return [line.plain for line in running.lines(width)]


def test_a_call_is_shown_with_its_last_line_until_it_ends() -> None:
    running = RunningCalls()

    running.begin("c1", "bash ls")
    running.show_output("c1", "first\nlast [bold]\n\n")
    shown = _lines(running)

    assert (shown, running.end("c1") is not None, running.end("c1"), _lines(running)) == (
        ["  … bash ls  0 s  last [bold]"],
        True,
        None,
        [],
    )


def test_output_without_room_beside_a_long_command_stands_on_a_line_of_its_own() -> None:
    running = RunningCalls()

    running.begin("c1", f"bash $ {'long ' * 20}")
    running.show_output("c1", "12 of 300 tests have passed until now\n")

    assert _lines(running, 40) == [
        "  … bash $ long long long long lo…  0 s",
        "  │ 12 of 300 tests have passed until …",
    ]


def test_calls_that_run_side_by_side_stand_below_their_count_and_many_are_summed_up() -> None:
    running = RunningCalls()
    for number in range(10):
        running.begin(f"c{number}", f"grep {number}")

    assert _lines(running) == [
        "  10 running in parallel",
        *(f"  … grep {number}  0 s" for number in range(8)),
        "  … and 2 more",
    ]


def test_what_is_waited_for_gets_a_line_when_it_does_not_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningCalls()

    running.wait("m", "waiting for the model")
    at_once = _lines(running)
    later = time.monotonic() + 12
    monkeypatch.setattr("time.monotonic", lambda: later)

    assert (at_once, _lines(running)) == ([], ["  … waiting for the model  12 s"])


def test_what_is_tried_again_later_is_counted_down_and_then_up(monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningCalls()
    began = time.monotonic()

    running.wait("m", "asking again", 8.2)
    shown = list[str]()
    for passed in (1.5, 12.5):
        monkeypatch.setattr("time.monotonic", lambda passed=passed: began + passed)
        shown += _lines(running)

    assert shown == ["  … asking again  in 7 s", "  … asking again  4 s"]
