"""The disk fails at each write of a thread, once: what was acknowledged stands, and nothing runs twice."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import StorageError
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import Stage

T = TypeVar("T")


class FailingDatabase(Database):
    """Fails one of its writes as SQLite does at a COMMIT that finds no room: all of it is done, then undone."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = 0
        self.has_failed = False

    @classmethod
    async def open_to_fail(cls, path: Path, number: int) -> Self:
        database = await cls.open(path)
        database.left = number
        return database

    async def write(self, work: Callable[[Connection], T], *, synced: bool = True, thread_id: str = "") -> T:
        self.left -= 1
        if self.left:
            return await super().write(work, synced=synced, thread_id=thread_id)

        def fail(connection: Connection) -> T:
            work(connection)
            raise sqlite3.OperationalError("database or disk is full")

        self.has_failed = True
        return await super().write(fail, synced=synced)


async def _answer_all(session: Session, rest: TurnResult) -> None:
    for _ in range(30):
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "cancel")
        if rest.questions:
            rest = await session.proceed()
        elif rest.status == "resumable":
            rest = await session.continue_turn()
        else:
            return
    raise AssertionError(f"no rest in 30 steps: {rest}")


async def _is_write_failing(stage: Stage, number: int) -> bool:
    """Play a turn on a disk that fails; whether it came to that."""
    database = await FailingDatabase.open_to_fail(stage.database, number)
    with suppress(StorageError):
        async with stage.open_session(database=database) as session:
            await _answer_all(session, await session.send("go"))
    return database.has_failed


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 2, 3, 4])
async def test_whichever_write_fails_the_next_run_continues_and_no_call_runs_a_second_time(
    tmp_path: Path, first: int
) -> None:
    number = first
    while True:
        script = (calls(("r", "read_a"), ("w", "write_a")), text("one"), calls(("v", "write_b")), text("two"))
        stage = Stage(tmp_path / f"{number}.db", ScriptedModel(*script))
        if not await _is_write_failing(stage, number):
            break
        before = Counter(call_id for call_id, _ in stage.toolbox.ran)
        stage.model = ScriptedModel(*script[len(stage.model.requests) :])
        async with stage.open_session() as session:
            await _answer_all(session, await session.start())

        ran = Counter(call_id for call_id, _ in stage.toolbox.ran)
        # A read may be run again unasked; what writes never is.
        assert {call_id: times for call_id, times in ran.items() if times > 1 and call_id != "r"} == {}, number
        assert before["w"] <= 1, number
        with read_database(stage.database) as reader:
            threads = [(thread.status, reader.inconsistencies(thread.thread_id)) for thread in reader.threads()]
        # Where not even the first message could be stored, there is no thread, and nothing ran.
        assert threads == [("idle", [])] or (threads, stage.toolbox.ran) == ([], []), number
        number += 4

    assert number > 12
