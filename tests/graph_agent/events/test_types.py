import json
from typing import get_args

import pytest

from graph_agent.events import (
    Compacted,
    Event,
    ModelMessage,
    ServerChanged,
    SessionOpened,
    ShellContinued,
    ShellEnded,
    StepStarted,
    TextDelta,
    ToolCallCreated,
    ToolCallDecided,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
    WarningIssued,
    event_from_json,
    event_to_json,
)

EXAMPLES: list[Event] = [
    SessionOpened("t", "c", "/w", "offline", "default"),
    TurnStarted("hi"),
    StepStarted(1),
    TextDelta("he", "reasoning"),
    ToolCallDelta(0, "ls", '{"pa'),
    ModelMessage("hello", ("c1", "c2"), {"input_tokens": 3}),
    ToolCallCreated({"call_id": "c1", "arguments": {"path": "."}}),
    ToolCallDecided("c1", "reject", "chat", "not now"),
    ToolCallStarted("c1", "ls", "ls ."),
    ToolCallProgress("c1", "shell_output", "line\n"),
    ToolCallFinished("c1", "ls", "success", metadata={"diff": {"added": 1}}),
    TurnEnded("done", "hello", "c", {"input_tokens": 3}),
    Compacted(84_000, 21_000, "summary"),
    WarningIssued("slow"),
    ServerChanged("tickets", "running", 3),
    ShellEnded("sh1", "npm start", "exit code 1"),
    ShellContinued("sh2", "npm start"),
]


def test_the_examples_cover_every_event() -> None:
    assert {type(event) for event in EXAMPLES} == set(get_args(Event))


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_an_event_written_as_a_json_line_reads_back_the_same(event: Event) -> None:
    line = json.dumps(event_to_json(event))

    assert event_from_json(json.loads(line)) == event


def test_a_field_from_a_newer_version_is_ignored() -> None:
    assert event_from_json({"type": "warning", "text": "x", "colour": "red"}) == WarningIssued("x")
