from dataclasses import replace

from graph_agent.events import (
    LiveCall,
    LiveCalls,
    ModelMessage,
    ToolCallCreated,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
)

_PARAMS = {"command": "ls", "more": {"a": 1}}
_RECORD = {"call_id": "c1", "tool_name": "bash", "arguments": _PARAMS, "summary": "$ ls"}


def test_a_call_that_streams_in_gathers_its_arguments_and_is_forgotten_with_the_reply() -> None:
    calls = LiveCalls()

    calls.take(ToolCallDelta(0, "bash", '{"comm'))
    other = calls.take(ToolCallDelta(1, "ls", "{}"))
    both = calls.take(ToolCallDelta(0, "bash", 'and": "l'))
    calls.take(ModelMessage(""))

    assert (both, other) == (
        LiveCall(tool_name="bash", arguments_text='{"command": "l'),
        LiveCall(tool_name="ls", arguments_text="{}"),
    )
    assert calls.take(ToolCallDelta(0, "bash", "{")) == LiveCall(tool_name="bash", arguments_text="{")


def test_state_and_information_gather_until_the_end_and_are_dropped_there() -> None:
    calls, half = LiveCalls(), ToolCallProgress("c1", "mcp_progress", "half", 1, 2)

    seen = [
        calls.take(event)
        for event in (
            ToolCallCreated(_RECORD),
            ToolCallStarted("c1", "bash", "$ ls"),
            half,
            ToolCallFinished("c1", "bash", "success", output="a"),
        )
    ]

    waits = LiveCall("c1", "bash", params=_PARAMS, summary="$ ls")
    does = replace(waits, state="DOING")
    assert seen == [
        waits,
        does,
        replace(does, progress=half),
        replace(does, state="SUCCESS", progress=half, result="a"),
    ]
    assert calls.take(ToolCallStarted("c1", "bash", "")) == LiveCall("c1", "bash", "DOING")


def test_a_later_record_is_merged_in_deeply_and_every_bad_end_is_an_error() -> None:
    calls = LiveCalls()
    calls.take(ToolCallCreated(_RECORD))

    edited = calls.take(ToolCallCreated({**_RECORD, "arguments": {"command": "pwd", "more": {"b": 2}}}))
    ends = [calls.take(ToolCallFinished("c1", "bash", status)) for status in ("error", "cancelled", "interrupted")]

    assert edited is not None
    assert edited.params == {"command": "pwd", "more": {"a": 1, "b": 2}}
    assert [end.state for end in ends if end] == ["ERROR"] * 3


def test_other_events_are_about_no_call() -> None:
    assert LiveCalls().take(ModelMessage("hi")) is None
