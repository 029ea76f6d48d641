import io
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.live_area import LiveArea, RunningCalls, format_partial_arguments, is_reflowing
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import Event, ModelMessage, TextDelta, ToolCallCreated, ToolCallDelta, WarningIssued
from tests.fakes.screen import Screen


class _Scene:
    """An area on a terminal of this size, and what is seen there."""

    def __init__(self, columns: int = 30, rows: int = 8) -> None:
        self._stream = io.StringIO()
        self._console = Console(
            file=self._stream, width=columns, height=rows, force_terminal=True, color_system=None, markup=False
        )
        self._screen = Screen(columns, rows)
        self._area = LiveArea(self._console)

    def draw(self, *lines: str) -> str:
        self._area.draw([Text(line) for line in lines])
        return self._written()

    def print(self, lines: Sequence[str], below: Sequence[str] = ()) -> str:
        self._area.print([Text(line) for line in lines], [Text(line) for line in below])
        return self._written()

    def resize(self, columns: int, rows: int) -> None:
        self._console.size = (columns, rows)
        self._screen.resize(columns, rows)

    @property
    def seen(self) -> list[str]:
        return self._screen.lines

    def _written(self) -> str:
        written = self._stream.getvalue()
        self._stream.seek(0)
        self._stream.truncate()
        self._screen.feed(written)
        return written


def test_lines_in_place_are_replaced_and_lines_that_stay_stand_above_them() -> None:
    scene = _Scene()

    scene.draw("a 1 s", "b 1 s")
    scene.print(["done"], ["b 2 s"])
    with_one = scene.seen
    scene.draw()
    scene.print(["end"])

    assert (with_one, scene.seen) == (["done", "b 2 s"], ["done", "end"])


def test_what_did_not_change_is_not_written_again() -> None:
    scene = _Scene()
    scene.draw("a 1 s", "b 1 s")

    again = scene.draw("a 1 s", "b 1 s")
    one = scene.draw("a 1 s", "b 2 s")
    more = scene.draw("a 1 s", "b 2 s and")

    assert (again, "a 1 s" in one, more) == ("", False, " and\x1b[K")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a"], ["a", "b", "c"]),
        (["a", "b", "c"], ["a"]),
        (["a", "b", "c"], ["c"]),
        (["a", "b"], []),
        (["abc", "d"], ["ab", "d"]),
        ([], ["a", "b"]),
        (["", "a"], ["a", ""]),
    ],
)
def test_whatever_stood_there_the_new_lines_are_seen_and_more_can_follow(
    before: list[str], after: list[str]
) -> None:
    scene = _Scene()
    scene.print(["above"])

    scene.draw(*before)
    scene.draw(*after)
    drawn = scene.seen
    scene.print(["stays"], after)

    expected = [line for line in after if line or after[-1]]
    assert (drawn, scene.seen) == (["above", *expected], ["above", "stays", *expected])


def test_of_more_lines_than_rows_the_last_are_seen_and_nothing_of_them_is_left_behind() -> None:
    scene = _Scene(rows=5)

    scene.draw(*(f"line {number}" for number in range(9)))
    drawn = scene.seen
    scene.draw()

    assert (drawn, scene.seen) == ([f"line {number}" for number in range(5, 9)], [])


def test_a_line_too_wide_is_cut_in_place_and_whole_where_it_stays() -> None:
    scene = _Scene(columns=10)

    scene.draw("日本語日本語日本語")
    drawn = scene.seen
    scene.print(["日本語日本語日本語"])

    assert (drawn, scene.seen) == (["日本語日…"], ["日本語日本", "語日本語"])


@pytest.mark.parametrize("columns", [12, 60])
def test_after_a_resize_nothing_is_twice_and_nothing_is_lost(columns: int) -> None:
    scene = _Scene()
    scene.print(["stays"])
    scene.draw("this runs for 1 s", "that too")

    scene.resize(columns, 8)
    scene.print(["more"], ["this runs for 2 s", "that too"])
    scene.draw("this runs for 3 s")

    assert scene.seen == ["stays", "more", "this runs …" if columns == 12 else "this runs for 3 s"]


def test_a_terminal_that_folds_anew_is_counted_in_rows_of_its_new_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VTE_VERSION", "7600")
    scene = _Scene()
    scene.draw("x" * 25, "y")

    scene.resize(10, 8)

    assert scene.draw("z").startswith("\r\x1b[3A\x1b[J")


@pytest.mark.parametrize(
    ("environment", "folds"),
    [({"TMUX": "/tmp/x"}, True), ({"TERM_PROGRAM": "vscode"}, True), ({"TERM": "xterm-256color"}, False)],
)
def test_terminals_that_fold_anew_are_known_by_what_they_set(environment: dict[str, str], folds: bool) -> None:
    assert is_reflowing(environment) == folds


@pytest.mark.parametrize("terminal", ["dumb", "pipe"])
def test_without_a_cursor_to_move_only_what_stays_is_written(terminal: str) -> None:
    stream = io.StringIO()
    area = LiveArea(Console(file=stream, force_terminal=terminal == "dumb", _environ={"TERM": "dumb"}))

    area.draw([Text("runs")])
    area.print([Text("stays")], [Text("runs")])
    area.draw(())

    assert stream.getvalue() == "stays\n"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("", ""),
        ('{"pa', ""),
        ('{"path": "a', "path: a"),
        ('{"path": "a.txt", "limit": 2, "deep": true', "path: a.txt, limit: 2, deep: true"),
        ('{"content": "one\\n\\ttwo \\"q\\" \\u00e9 \\', 'content: one two "q" é'),
        ('{"edits": [{"old_string": "a", "new_string": "b"}', "old_string: a, new_string: b"),
        ('{"content": "' + "x" * 100 + "yz", "content: …" + "x" * 58 + "yz"),
        ('{"content": "\\ud800"}', "content: ?"),
        ("no json: at all", ""),
    ],
)
def test_what_has_arrived_is_read_as_far_as_it_goes(raw: str, shown: str) -> None:
    assert format_partial_arguments(raw) == shown


@given(st.text())
def test_nothing_that_arrives_can_hurt(raw: str) -> None:
    assert "\n" not in format_partial_arguments('{"a": "' + raw)


def _drawn(*events: Event) -> str:
    stream = io.StringIO()
    story = TurnDisplay(Console(file=stream, width=70, force_terminal=True, color_system=None, markup=False))
    for number, event in enumerate(events):
        story(number, event)
        story.tick()
    return stream.getvalue()


def _seen(drawn: str) -> list[str]:
    screen = Screen(70, 25)
    screen.feed(drawn)
    return screen.lines


def test_a_call_that_streams_in_is_shown_live_until_the_reply_is_whole() -> None:
    arriving = [
        ToolCallDelta(0, "write_file", '{"file_path": "a.txt", '),
        ToolCallDelta(0, "write_file", '"content": "he'),
    ]

    drawn = _drawn(TextDelta("I write."), *arriving)
    ended = _drawn(
        *arriving, ModelMessage("", ("c1",)), ToolCallCreated({"call_id": "c1", "tool_name": "write_file"})
    )

    assert _seen(drawn) == ["I write.", "  … write_file (streaming)  0 s  file_path: a.txt, content: he"]
    assert _seen(ended) == []


def test_a_reply_that_begins_anew_forgets_what_had_arrived() -> None:
    drawn = _drawn(
        ToolCallDelta(0, "ls", '{"path": "old'),
        WarningIssued("Waiting 1 s."),
        ToolCallDelta(0, "ls", '{"path": "new'),
    )

    assert drawn.rindex("path: new") > drawn.rindex("path: old")
    assert "oldnew" not in drawn.replace('{"path": "', "")


def test_away_from_a_terminal_nothing_of_it_is_told() -> None:
    stream = io.StringIO()
    story = TurnDisplay(Console(file=stream, width=70))

    story(1, ToolCallDelta(0, "ls", "{}"))

    assert stream.getvalue() == ""


def _lines(running: RunningCalls, width: int = 60) -> list[str]:
    return [line.plain for line in running.lines(width)]


def test_a_call_is_shown_with_its_last_line_until_it_ends() -> None:
    running = RunningCalls()

    running.begin("c1", "bash ls")
    running.show_output("c1", "first\nlast [bold]\n\n")
    shown = _lines(running)

    assert (shown, running.end("c1") is not None) == (["  … bash ls  0 s  last [bold]"], True)
    assert (running.end("c1"), _lines(running)) == (None, [])


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
