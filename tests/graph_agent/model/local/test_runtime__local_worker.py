import asyncio

import pytest

from graph_agent.errors import ModelError
from graph_agent.model.local.runtime import Ask, Generated, Worker
from tests.fakes.scripted_runtime import ScriptedRuntime

ASK = Ask([], 10)


async def test_pieces_are_told_in_order_and_the_whole_is_returned() -> None:
    pieces: list[str] = []

    told = await Worker(ScriptedRuntime(["a\nb"])).generate(ASK, pieces.append)

    assert (told, pieces) == (Generated("a\nb", is_whole=True, input_tokens=7, output_tokens=3), ["a\n", "b"])


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ModelError("no memory"), "no memory"),
        (RuntimeError("bad tensor"), "The local model failed: bad tensor."),
        (MemoryError(), "The local model failed: MemoryError."),
    ],
)
async def test_a_failure_of_the_runtime_reaches_the_one_who_waits(failure: Exception, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        await Worker(ScriptedRuntime([failure])).generate(ASK, lambda _: None)


async def test_a_cancelled_request_ends_at_the_next_token_and_tells_nothing_more() -> None:
    runtime = ScriptedRuntime([], endless=True)
    pieces: list[str] = []
    asking = asyncio.create_task(Worker(runtime).generate(ASK, pieces.append))
    await asyncio.to_thread(runtime.began.wait, 5)

    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    told = len(pieces)

    assert await asyncio.to_thread(runtime.ended.wait, 5)
    await asyncio.sleep(0.02)
    assert len(pieces) == told


async def test_closing_waits_for_the_end_of_what_still_generates() -> None:
    runtime = ScriptedRuntime([], endless=True)
    worker = Worker(runtime)
    asking = asyncio.create_task(worker.generate(ASK, lambda _: None))
    await asyncio.to_thread(runtime.began.wait, 5)

    await worker.close()

    assert runtime.ended.is_set()
    assert not (await asking).is_whole
