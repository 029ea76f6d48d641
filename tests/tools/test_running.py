import asyncio
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.fakes.tool_ports import MemoryBlobs, ToolSurroundings
from tests.fakes.waiting import until
from tools.base import BaseTool, HostTarget, Preview, Target, ToolContext, ToolKind, ToolResult, ToolRiskLevel
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
            case "timeout of its own":
                raise TimeoutError("server")
            case "control":
                raise ControlStop
            case "sleep":
                await asyncio.sleep(30)
        return ToolResult(what)

    async def preview(self, args: object, context: ToolContext | None = None) -> Preview:
        return Preview("text", "shown" if context is None else context.call_id)


async def test_a_bug_in_a_tool_becomes_an_error_result_with_its_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        result = await execute(Acting(), {"what": "bug"}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}
    assert (
        result.error
        == "acting failed with an internal error: KeyError: 'lost'. What it did before that stays done."
    )
    assert [record.exc_info is not None for record in caplog.records] == [True]


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (BaseException("b"), "BaseException: b"),
        (asyncio.CancelledError("unasked"), "CancelledError: unasked"),
        (Mute(), "Mute: it has no readable message"),
    ],
)
async def test_no_tool_ends_the_run_whatever_it_raises(tmp_path: Path, raised: BaseException, told: str) -> None:
    class Wild(Acting):
        async def execute(self, *, what: str) -> ToolResult:
            raise raised

    result = await execute(Wild(), {"what": "x"}, ToolSurroundings(tmp_path).context())

    assert result.error == f"acting failed with an internal error: {told}. What it did before that stays done."


@pytest.mark.parametrize("fields", [{"output": 7}, {"output": "", "display": 7}, {"output": "", "error": 7}])
async def test_a_result_of_the_wrong_types_is_a_bug_of_the_tool(tmp_path: Path, fields: dict[str, Any]) -> None:
    class Odd(Acting):
        async def execute(self, *, what: str) -> ToolResult:
            return ToolResult(**fields)

    result = await execute(Odd(), {"what": "x"}, ToolSurroundings(tmp_path).context())

    assert "of a ToolResult cannot be int" in str(result.error)


async def test_a_tool_over_its_time_is_stopped_and_its_cancellation_set(tmp_path: Path) -> None:
    context = ToolSurroundings(tmp_path).context()

    result = await execute(Acting(), {"what": "sleep"}, context)

    assert result.metadata == {"error_type": "timeout"}
    assert result.error == "acting was stopped after 0.05 seconds; ask for less at once."
    assert context.cancellation.is_set()


async def test_a_timeout_the_tool_raises_itself_is_its_own_failure(tmp_path: Path) -> None:
    result = await execute(Acting(), {"what": "timeout of its own"}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}


async def test_what_is_passing_comes_through(tmp_path: Path) -> None:
    with pytest.raises(ControlStop):
        await execute(Acting(), {"what": "control"}, ToolSurroundings(tmp_path).context(), reraise=(ControlStop,))


async def test_a_cancellation_comes_through_and_is_set_for_threads(tmp_path: Path) -> None:
    context = ToolSurroundings(tmp_path).context()
    tool = Acting()
    tool.timeout_s = 30
    task = asyncio.ensure_future(execute(tool, {"what": "sleep"}, context))
    await asyncio.sleep(0.01)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.cancellation.is_set()


async def test_bad_arguments_are_refused_before_the_tool_is_entered(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="what: missing"):
        await execute(Acting(), {}, ToolSurroundings(tmp_path).context())


def test_only_arguments_that_were_given_are_recorded() -> None:
    class Defaults(BaseTool):
        name = "defaults"

        class Args(BaseModel):
            a: int = 1
            b: int = 2

        args_schema = Args

    assert normalize_arguments(Defaults(), {"b": "3"}) == {"b": 3}


async def test_a_preview_gets_the_context(tmp_path: Path) -> None:
    shown = await preview(Acting(), {"what": "x"}, ToolSurroundings(tmp_path).context(call_id="c9"))

    assert shown == Preview("text", "c9")


async def test_a_tool_that_returns_no_result_is_a_bug_of_the_tool(tmp_path: Path) -> None:
    class Careless(BaseTool):
        name = "careless"

        async def execute(self) -> ToolResult:
            return "text"  # type: ignore[return-value]  # what is tested

    result = await execute(Careless(), {}, ToolSurroundings(tmp_path).context())

    assert result.metadata == {"error_type": "unknown"}
    assert "execute must return a ToolResult, not str" in str(result.error)


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


def test_a_short_result_stays_as_it_is(tmp_path: Path) -> None:
    result = ToolResult("short", metadata={"a": 1})

    assert limit_result(result, 5, MemoryBlobs(tmp_path)) is result


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


def test_without_a_store_the_notice_names_no_reference() -> None:
    shaped = limit_result(ToolResult("x" * 100), 30, None)

    assert "narrow the call" in shaped.output
    assert shaped.metadata == {"truncated": True, "full_chars": 100}


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise OSError("no room")


def test_an_output_that_cannot_be_stored_fails_no_call(tmp_path: Path) -> None:
    shaped = limit_result(ToolResult("x" * 100), 30, _FullDisk(tmp_path))

    assert (shaped.error, shaped.metadata) == (None, {"truncated": True, "full_chars": 100})
