import asyncio
import threading
import time

import pytest

from tools.third_party import ToolQueryFailed, query_tool, query_tool_async


class _Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


def _raise(error: BaseException) -> str:
    raise error


async def test_an_answer_and_an_error_that_is_waited_for_come_out_as_they_are() -> None:
    async def answers() -> str:
        return threading.current_thread().name

    assert await query_tool("t", lambda: threading.current_thread().name) == "what t says"
    assert await query_tool_async("t", answers) == "tools of others"
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
        (_Mute(), "_Mute: it cannot say why"),
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
        "t did not say within 0.2 seconds what it makes of this call, so nothing was done. Do without it."
    ] * 2


async def test_a_question_that_is_given_up_ends_at_once() -> None:
    asking = asyncio.create_task(query_tool("t", lambda: time.sleep(2)))
    await asyncio.sleep(0.05)

    asking.cancel()
    await asyncio.wait({asking}, timeout=1)

    assert asking.cancelled()
