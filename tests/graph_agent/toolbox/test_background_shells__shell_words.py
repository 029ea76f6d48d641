import pytest

from graph_agent.ports.background import ShellEnding
from graph_agent.toolbox.background_shells import format_duration, format_ending


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (ShellEnding("exited", 0), "exit code 0"),
        (ShellEnding("exited", -9), "killed by signal SIGKILL"),
        (ShellEnding("exited"), "ended, nobody knows how"),
        (ShellEnding("kill", -15), "ended by bash_kill"),
        (ShellEnding("exited_unobserved", 4), "ended while nobody watched, exit code 4"),
        (ShellEnding("exited_unobserved"), "ended with the program that had started it, or after"),
        (ShellEnding("of a later version", 1), "exit code 1"),
    ],
)
def test_an_ending_is_told_for_what_it_is(ending: ShellEnding, told: str) -> None:
    assert format_ending(ending, "npm start") == told


def test_a_time_span_is_told_in_the_unit_that_fits() -> None:
    spans = [format_duration(seconds) for seconds in (-1, 0.4, 119, 120, 7_199, 7_200, 172_800)]

    assert spans == ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]
