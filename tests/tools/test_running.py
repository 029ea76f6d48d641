import asyncio
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.fakes.tool_ports import MemoryBlobs, ToolEnvironment
from tests.fakes.waiting import until
from tools.base import (
    BaseTool,
    HostTarget,
    Limits,
    Preview,
    Target,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
)
from tools.running import CallProfile, execute, limit_result, normalize_arguments, preview, run_in_thread
from tools.schema import InvalidArguments


class Behaviour(BaseModel):
    what: str


class ControlStop(Exception):
    pass


class Acting(BaseTool):
    name = "acting"
    args_schema = Behaviour
    timeout_s = 0.05

    async def execute(self, *, what: str) -> ToolResult:
        match what:
            case "bug":
                raise KeyError("lost")
            case "control":
                raise ControlStop
            case "sleep":
                await asyncio.sleep(30)
        return ToolResult(what)

    async def preview(self, args: object, context: ToolContext | None = None) -> Preview:
        return Preview("text", "shown" if context is None else context.call_id)


class Defaults(BaseTool):
    name = "defaults"

    class Args(BaseModel):
        a: int = 1
        b: int = 2

    args_schema = Args


async def test_a_bug_is_logged_with_its_traceback_and_what_ends_a_run_comes_through(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = ToolEnvironment(tmp_path).context(call_id="c9")
    with caplog.at_level(logging.ERROR):
        await execute(Acting(), {"what": "bug"}, context)

    assert [record.exc_info is not None for record in caplog.records] == [True]
    with pytest.raises(ControlStop):
        await execute(Acting(), {"what": "control"}, context, reraise=(ControlStop,))
    with pytest.raises(InvalidArguments, match="what: missing"):
        await execute(Acting(), {}, context)
    assert await preview(Acting(), {"what": "x"}, context) == Preview("text", "c9")
    assert normalize_arguments(Defaults(), {"b": "3"}) == {"b": 3}


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (BaseException("b"), "BaseException: b"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (asyncio.CancelledError("unasked"), "CancelledError: unasked"),
        (Mute(), "Mute: it has no readable message"),
        ("text", "TypeError: execute must return a ToolResult, not str"),
        (ToolResult(7), "TypeError: the output of a ToolResult cannot be int"),  # type: ignore[arg-type]  # what is reported
        (ToolResult("", 7), "TypeError: the display of a ToolResult cannot be int"),  # type: ignore[arg-type]  # as above
        (ToolResult("", error=7), "TypeError: the error of a ToolResult cannot be int"),  # type: ignore[arg-type]  # as above
    ],
)
async def test_no_tool_ends_the_run_whatever_it_raises_or_returns(
    tmp_path: Path, outcome: object, problem: str
) -> None:
    class Wild(Acting):
        async def execute(self, *, what: str) -> ToolResult:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome  # type: ignore[return-value]  # what is reported

    result = await execute(Wild(), {"what": "x"}, ToolEnvironment(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}
    kept = "Anything it did before that is not undone."
    assert result.error == f"acting failed with an internal error: {problem}. {kept}"


@pytest.mark.parametrize(
    ("limits", "time"),
    [
        (Limits(), "0.05 seconds"),
        (Limits(call_s=60), "0.05 seconds"),
        (Limits(call_s=0.01), "0.01 seconds (setting tool_timeout)"),
    ],
)
async def test_a_tool_over_its_time_is_stopped_and_its_cancellation_set(
    tmp_path: Path, limits: Limits, time: str
) -> None:
    context = ToolEnvironment(tmp_path).context(limits=limits)

    result = await execute(Acting(), {"what": "sleep"}, context)

    assert result.metadata == {"error_type": "timeout"}
    assert result.error == f"acting was stopped after {time}; ask for less at once."
    assert context.cancellation.is_set()


async def test_a_cancellation_comes_through_and_is_set_for_threads(tmp_path: Path) -> None:
    context = ToolEnvironment(tmp_path).context()
    tool = Acting()
    tool.timeout_s = 30
    task = asyncio.ensure_future(execute(tool, {"what": "sleep"}, context))
    await asyncio.sleep(0.01)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.cancellation.is_set()


async def test_work_gives_its_value_or_its_error() -> None:
    assert await run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


async def test_a_cancellation_waits_for_the_work_so_that_nothing_goes_on_unseen() -> None:
    entered, leave, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        entered.set()
        leave.wait(10)
        done.set()

    task = asyncio.ensure_future(run_in_thread(work))
    await until(entered.is_set)
    task.cancel()
    await asyncio.sleep(0.02)
    still_waiting = not task.done()
    task.cancel()
    leave.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert still_waiting
    assert done.is_set()


class _Args(BaseModel):
    host: str
    times: int = 1


class _Tool(BaseTool):
    name = "reach"
    kind = ToolKind.READONLY
    risk_level = ToolRiskLevel.HIGH
    args_schema = _Args
    objection: str | None = None
    found: Any = None

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return self.objection

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [HostTarget(args["host"])] if self.found is None else self.found


def test_it_says_of_the_call_what_the_tool_said_whatever_it_is_asked() -> None:
    told = CallProfile(_Tool(), {"host": "h", "times": "2"})

    assert told.arguments == {"host": "h", "times": 2}
    assert (told.validate({}), told.is_read_only({}), told.is_concurrency_safe({})) == (None, True, True)
    assert (told.targets({}), told.signature({}), told.suggest_rule({})) == ([HostTarget("h")], "h", "reach(h)")
    assert (told.display_call({}), told.kind, told.risk_level) == ("reach h", ToolKind.READONLY, ToolRiskLevel.HIGH)


def test_of_arguments_it_objects_to_a_tool_is_asked_nothing_more() -> None:
    tool = _Tool()
    tool.objection, tool.found = "not that host", ["nonsense"]

    assert CallProfile(tool, {"host": "h"}).validate({}) == "not that host"


def test_what_it_cannot_have_meant_is_an_error_before_anything_is_judged() -> None:
    tool = _Tool()
    tool.found = ["/etc/passwd"]

    with pytest.raises(TypeError, match="targets cannot hold str"):
        CallProfile(tool, {"host": "h"})
    with pytest.raises(InvalidArguments):
        CallProfile(_Tool(), {})


def test_a_long_result_keeps_head_and_tail_and_says_how_to_read_the_rest(tmp_path: Path) -> None:
    blobs = MemoryBlobs(tmp_path)
    whole = "".join(f"line {number}\n" for number in range(1000))

    shaped = limit_result(ToolResult(whole, display="d", metadata={"a": 1}), 600, blobs)

    (reference,) = blobs.stored
    head, notice, tail = shaped.output.partition(f"[… left out here: the whole output has {len(whole)} characters")
    assert blobs.stored[reference] == whole.encode()
    assert head.startswith("line 0\nline 1\n")
    assert f'read_file(file_path="{reference}", offset=..., limit=...)' in tail
    assert tail.endswith("line 998\nline 999\n")
    assert notice
    assert len(shaped.output) < 900
    assert shaped.metadata == {"a": 1, "truncated": True, "full_chars": len(whole), "blob": reference}


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise OSError("no room")


@pytest.mark.parametrize("full", [True, False])
def test_without_a_store_or_room_the_notice_names_no_reference(tmp_path: Path, *, full: bool) -> None:
    short, blobs = ToolResult("short", metadata={"a": 1}), MemoryBlobs(tmp_path)

    shaped = limit_result(ToolResult("x" * 100), 30, _FullDisk(tmp_path) if full else None)

    assert ("narrow the call" in shaped.output, shaped.error) == (True, None)
    assert shaped.metadata == {"truncated": True, "full_chars": 100}
    assert limit_result(short, 5, blobs) is short
