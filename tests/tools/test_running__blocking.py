import asyncio
import threading

import pytest

from tests.fakes.waiting import until
from tools.running import run_in_thread


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
