import asyncio
import os
import signal
from pathlib import Path

import pytest

from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.supervisor import SupervisedResult, run_supervised, run_until_signal
from graph_agent.errors import StorageError
from graph_agent.events import EventBus
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_session import Pause, ScriptedSession, Turn, rest


def _session(folder: Path, seconds: float) -> ScriptedSession:
    return ScriptedSession(EventBus(), folder, [Turn(rest(answer="ok"), (Pause(seconds),))])


async def _cut(session: ScriptedSession, number: signal.Signals) -> SupervisedResult[TurnResult]:
    asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), number)
    return await run_supervised(session, session.send("go"))


async def test_work_that_ends_in_time_is_not_interrupted(tmp_path: Path) -> None:
    session = _session(tmp_path, 0.01)

    assert await run_supervised(session, session.send("go"), timeout_seconds=30) == SupervisedResult(
        None, rest(answer="ok")
    )


async def test_the_previous_signal_handlers_are_restored(tmp_path: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]

    await _cut(_session(tmp_path, 30), signal.SIGTERM)

    assert [signal.getsignal(number) for number in numbers] == before


async def test_ctrl_c_stops_the_turn_and_keeps_its_result(tmp_path: Path) -> None:
    session = _session(tmp_path, 30)

    assert await _cut(session, signal.SIGINT) == SupervisedResult(ExitCode.INTERRUPTED, rest("stopped"))
    assert session.log == [("send", "go"), ("stop",)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_termination_suspends_the_turn(tmp_path: Path, number: signal.Signals, code: int) -> None:
    session = _session(tmp_path, 30)

    assert await _cut(session, number) == SupervisedResult(ExitCode(code), None)
    assert session.log == [("send", "go"), ("suspend",)]


async def test_the_time_limit_suspends_the_turn(tmp_path: Path) -> None:
    session = _session(tmp_path, 30)

    assert await run_supervised(session, session.send("go"), timeout_seconds=0.1) == SupervisedResult(
        ExitCode.LIMIT, None
    )
    assert session.log == [("send", "go"), ("suspend",)]


async def test_work_that_a_signal_cancels_ends_by_the_signal_however_it_fails() -> None:
    async def opening() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError as cancelled:
            raise StorageError("cannot be opened") from cancelled

    asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGTERM)

    assert await run_until_signal(opening()) == SupervisedResult(ExitCode.TERMINATED, None)
