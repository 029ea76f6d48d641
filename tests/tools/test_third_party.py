import asyncio
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import until
from tools.base import BaseTool, ShellOutput, ToolContext, ToolResult
from tools.running import execute
from tools.third_party import ToolQueryFailed, ToolThread, query_tool, query_tool_async


class _Blocking(BaseTool):
    name = "blocking"
    timeout_s = 0.2

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def execute(self) -> ToolResult:
        time.sleep(self.seconds)  # noqa: ASYNC251 - what such tools do
        return ToolResult("woke")


class _Polite(BaseTool):
    name = "polite"
    timeout_s = 0.2
    was_cancelled = False

    async def execute(self) -> ToolResult:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return ToolResult("slept")


class _Using(BaseTool):
    name = "using"

    async def execute(self, *, context: ToolContext) -> ToolResult:
        await context.file_states.set("t1", "/a", "digest")
        context.progress(ShellOutput("half"))
        return ToolResult(f"{await context.file_states.get('t1', '/a')} {threading.current_thread().name}")


async def _ticks(during: "asyncio.Task[ToolResult]") -> int:
    count = 0
    while not during.done():
        await asyncio.sleep(0.02)
        count += 1
    return count


@pytest.mark.slow
async def test_a_tool_that_blocks_leaves_the_loop_alone_and_ends_at_its_limit_which_says_it_goes_on(
    tmp_path: Path,
) -> None:
    context = ToolEnvironment(tmp_path).context()
    running = asyncio.create_task(execute(_Blocking(2), {}, context, tool_thread=ToolThread()))

    ticks = await _ticks(running)
    result = running.result()
    after = await execute(_Blocking(0), {}, context, tool_thread=ToolThread())

    assert ticks > 10
    assert result.error == (
        "blocking was told to stop after 0.2 seconds but is still running; what it still does is not known."
    )
    assert (result.metadata, after.output) == ({"error_type": "timeout"}, "woke")


@pytest.mark.slow
async def test_a_cancelled_call_or_query_ends_though_its_tool_blocks(tmp_path: Path) -> None:
    tool_thread, tool = ToolThread(), _Blocking(3)
    tool.timeout_s = 60
    context = ToolEnvironment(tmp_path).context()
    running = asyncio.create_task(execute(tool, {}, context, tool_thread=tool_thread))
    asking = asyncio.create_task(query_tool("t", lambda: time.sleep(2)))
    await asyncio.sleep(0.1)

    running.cancel()
    asking.cancel()
    await asyncio.wait({running, asking}, timeout=2)

    assert (running.cancelled(), tool_thread.is_still_running, asking.cancelled()) == (True, True, True)


async def test_its_context_works_from_there_and_its_cancellation_arrives(tmp_path: Path) -> None:
    around, polite = ToolEnvironment(tmp_path), _Polite()

    result = await execute(_Using(), {}, around.context(), tool_thread=ToolThread())
    stopped = await execute(polite, {}, around.context(), tool_thread=ToolThread())

    assert result.output == "digest third-party tools"
    assert await until(lambda: around.output == ["half"])
    message = "polite was stopped after 0.2 seconds; ask for less at once."
    assert (stopped.error, polite.was_cancelled) == (message, True)


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(3), asyncio.CancelledError()])
async def test_what_one_raises_is_its_callers_and_the_next_call_runs(raised: BaseException) -> None:
    async def fails() -> None:
        raise raised

    async def works() -> str:
        return "fine"

    with pytest.raises(type(raised)):
        await ToolThread().run(fails)

    assert await ToolThread().run(works) == "fine"


class _Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


def _raise(error: BaseException) -> str:
    raise error


async def test_an_answer_and_an_error_that_is_waited_for_come_out_as_they_are() -> None:
    async def answers() -> str:
        return threading.current_thread().name

    assert await query_tool("t", lambda: threading.current_thread().name) == "query of t"
    assert await query_tool_async("t", answers) == "third-party tools"
    with pytest.raises(KeyError):
        await query_tool("t", lambda: _raise(KeyError("a")), reraise=(LookupError,))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no"), "ValueError: no"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (asyncio.CancelledError(), "CancelledError: "),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (_Mute(), "_Mute: it has no readable message"),
    ],
)
async def test_whatever_a_tool_raises_is_told_as_its_failure(error: BaseException, told: str) -> None:
    async def raises() -> str:
        return _raise(error)

    told_all = []
    for question in (query_tool("t", lambda: _raise(error)), query_tool_async("t", raises)):
        with pytest.raises(ToolQueryFailed) as unanswered:
            await question
        told_all.append(str(unanswered.value))

    assert told_all == [f"t failed when it was asked about this call: {told}. Nothing was done."] * 2


@pytest.mark.slow
async def test_one_that_sleeps_is_waited_for_as_long_as_is_fit_and_keeps_no_others_waiting() -> None:
    async def blocks() -> str:
        time.sleep(3)  # noqa: ASYNC251 - what such tools do
        return "late"

    begin = time.monotonic()

    asleep = [
        asyncio.create_task(query_tool("t", lambda: time.sleep(3), seconds=0.2)),
        asyncio.create_task(query_tool_async("t", blocks, seconds=0.2)),
    ]
    await asyncio.sleep(0.1)
    other = await query_tool("t", lambda: "at once")
    took = time.monotonic() - begin
    await asyncio.wait(asleep)

    assert (other, took < 0.8, time.monotonic() - begin < 2.5) == ("at once", True, True)
    assert [str(task.exception()) for task in asleep] == [
        "t did not answer about this call within 0.2 seconds, so nothing was done. Continue without it."
    ] * 2
