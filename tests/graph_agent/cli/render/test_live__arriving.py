import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from graph_agent.cli.render.live_area import format_partial_arguments
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import Event, ModelMessage, TextDelta, ToolCallCreated, ToolCallDelta, WarningIssued
from tests.fakes.screen import Screen


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
