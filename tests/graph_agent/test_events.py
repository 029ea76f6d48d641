import json
import logging
from dataclasses import replace
from itertools import chain
from typing import get_args

import pytest

from graph_agent.calls import STATUSES, allowed_answers
from graph_agent.events import (
    AnswerKind,
    Compacted,
    Event,
    EventBus,
    LiveCall,
    LiveCalls,
    MessageAdded,
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
    MessageAdded("and more"),
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
    TurnEnded("awaiting_approval", questions=({"call_id": "c1", "kind": "approval"},)),
    Compacted(84_000, 21_000, "summary"),
    WarningIssued("slow"),
    ServerChanged("tickets", "running", 3),
    ShellEnded("sh1", "npm start", "exit code 1"),
    ShellContinued("sh2", "npm start"),
]


def test_every_event_reads_back_from_its_json_line_as_it_was() -> None:
    assert {type(event) for event in EXAMPLES} == set(get_args(Event))
    assert [event_from_json(json.loads(json.dumps(event_to_json(event)))) for event in EXAMPLES] == EXAMPLES


def test_a_field_from_a_newer_version_is_ignored() -> None:
    assert event_from_json({"type": "warning", "text": "x", "colour": "red"}) == WarningIssued("x")


def test_every_kind_of_answer_answers_some_question() -> None:
    calls = [{"status": status, "requires_input": wants} for status in STATUSES for wants in (False, True)]

    assert set(chain.from_iterable(map(allowed_answers, calls))) == set(get_args(AnswerKind))


def subscribed(bus: EventBus) -> list[tuple[int, Event]]:
    seen: list[tuple[int, Event]] = []
    bus.subscribe(lambda number, event: seen.append((number, event)))
    return seen


@pytest.mark.parametrize("first", [StepStarted(1), None], ids=["the first event comes", "it is released"])
def test_events_are_numbered_in_order_and_wait_for_the_event_that_begins_or_for_its_release(
    first: Event | None,
) -> None:
    bus = EventBus(begins_with="step_started")
    seen = subscribed(bus)
    bus.publish(WarningIssued("early"))
    before = list(seen)

    if first is None:
        bus.release()
    else:
        bus.publish(first)
    bus.publish(WarningIssued("late"))

    events = [*([first] if first else []), WarningIssued("early"), WarningIssued("late")]
    assert (before, seen) == ([], list(enumerate(events, 1)))


def test_a_failing_subscriber_is_logged_and_the_others_still_hear(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()

    def fail(number: int, event: Event) -> None:
        raise RuntimeError(event.type)

    bus.subscribe(fail)
    seen = subscribed(bus)
    with caplog.at_level(logging.ERROR):
        bus.publish(StepStarted(1))

    assert seen == [(1, StepStarted(1))]
    assert [record.message for record in caplog.records] == ["subscriber failed on event 1 (step_started)"]


def test_a_subscriber_that_was_removed_hears_nothing_more() -> None:
    bus, seen = EventBus(), list[int]()
    unsubscribe = bus.subscribe(lambda number, _: seen.append(number))

    unsubscribe()
    unsubscribe()
    bus.publish(StepStarted(1))

    assert seen == []


_PARAMS = {"command": "ls", "more": {"a": 1}}
_RECORD = {"call_id": "c1", "tool_name": "bash", "arguments": _PARAMS, "summary": "$ ls"}


def test_a_call_that_streams_in_gathers_its_arguments_and_is_forgotten_with_the_reply() -> None:
    calls = LiveCalls()
    deltas = [
        ToolCallDelta(0, "bash", '{"comm'),
        ToolCallDelta(1, "ls", "{}"),
        ToolCallDelta(0, "bash", 'and": "l'),
    ]

    _, other, both = map(calls.take, deltas)
    ended = calls.take(ModelMessage(""))

    assert (both, other, ended) == (
        LiveCall(tool_name="bash", arguments_text='{"command": "l'),
        LiveCall(tool_name="ls", arguments_text="{}"),
        None,
    )
    assert calls.take(ToolCallDelta(0, "bash", "{")) == LiveCall(tool_name="bash", arguments_text="{")


def test_what_is_known_of_a_call_gathers_until_its_end_and_is_dropped_there() -> None:
    calls, half = LiveCalls(), ToolCallProgress("c1", "mcp_progress", "half", 1, 2)
    end = ToolCallFinished("c1", "bash", "success", output="a")
    events: list[Event] = [ToolCallCreated(_RECORD), ToolCallStarted("c1", "bash", "$ ls"), half, end]

    seen = [*map(calls.take, events)]

    waits = LiveCall("c1", "bash", params=_PARAMS, summary="$ ls")
    runs = replace(waits, state="DOING")
    ended = replace(runs, state="SUCCESS", progress=half, result="a")
    assert seen == [waits, runs, replace(runs, progress=half), ended]
    assert calls.take(ToolCallStarted("c1", "bash", "")) == LiveCall("c1", "bash", "DOING")


def test_a_later_record_is_merged_in_deeply_and_every_bad_end_is_an_error() -> None:
    calls = LiveCalls()
    calls.take(ToolCallCreated(_RECORD))

    edited = calls.take(ToolCallCreated({**_RECORD, "arguments": {"command": "pwd", "more": {"b": 2}}}))
    ends = [calls.take(ToolCallFinished("c1", "bash", status)) for status in ("error", "cancelled", "interrupted")]

    assert edited is not None
    assert edited.params == {"command": "pwd", "more": {"a": 1, "b": 2}}
    assert [end.state for end in ends if end] == ["ERROR"] * 3
