import asyncio
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from graph_agent.ports import Answer, Outcome, Question, SystemClock
from graph_agent.storage import Connection
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox, ThreadTable
from tests.contracts.storage.conftest import Engine
from tests.graph_agent.storage.sqlite.looking import rows
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, play_turn

WRITERS = 16
_AT = "2026-01-01T00:00:00.000Z"
Work = Callable[[Database, int], Awaitable[Any]]

pytestmark = pytest.mark.slow


def at_once(engine: Engine, work: Work, ends: Collection[int] = (0,)) -> list[Any]:
    """What the work answers in each of so many processes, which open the database and begin at the same instant."""
    begin, begun = os.pipe()
    children = []
    for number in range(WRITERS):
        answer, answered = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(begun)
            code = 1
            try:
                text = asyncio.run(_work(engine, work, number, begin))
                os.write(answered, text.encode())
                code = 0
            except BaseException:  # noqa: BLE001 - a forked child must not return into the test runner
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(code)
        os.close(answered)
        children.append((child, answer))
    os.close(begin)
    os.close(begun)
    answers = []
    for child, answer in children:
        with os.fdopen(answer) as file:
            answers.append(file.read())
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in ends
    return [json.loads(answer or "null") for answer in answers]


async def _work(engine: Engine, work: Work, number: int, begin: int) -> str:
    async with await engine.open() as database:
        await asyncio.to_thread(os.read, begin, 1)
        return json.dumps(await work(database, number))


def look(engine: Engine, work: Callable[[Database], Awaitable[Any]]) -> Any:
    """What one more process finds afterwards."""

    async def run() -> Any:
        async with await engine.open() as database:
            return await work(database)

    return asyncio.run(run())


def test_no_message_of_any_writer_is_lost_and_none_has_the_number_of_another(engine: Engine) -> None:
    async def queue(database: Database, number: int) -> list[int]:
        inbox = SqliteInbox(database, SystemClock())
        return [await inbox.queue("t", f"{number}:{count}", "me") for count in range(10)]

    numbers = [number for some in at_once(engine, queue) for number in some]

    waiting = look(engine, lambda database: SqliteInbox(database, SystemClock()).waiting("t"))
    assert sorted(numbers) == [number for number, _ in waiting]
    assert sorted(text for _, text in waiting) == sorted(f"{n}:{c}" for n in range(WRITERS) for c in range(10))


def test_each_call_is_claimed_by_one_writer_and_finished_by_it_alone(engine: Engine, tmp_path: Path) -> None:
    async def claim(database: Database, number: int) -> list[str]:
        journal = SqliteJournal(database, FileBlobs(tmp_path / "blobs"), SystemClock())
        won = []
        for call in range(10):
            if (await journal.claim("t", f"c{call}", 1, f"run {number}", None)).won:
                won.append(f"c{call}")
            await journal.finish("t", f"c{call}", 1, f"run {number}", Outcome("success", str(number)))
        return won

    winners = at_once(engine, claim)

    async def found(database: Database) -> dict[str, list[tuple[str, str]]]:
        journal = SqliteJournal(database, FileBlobs(tmp_path / "blobs"), SystemClock())
        return {
            call: [(row.owner, row.outcome.output if row.outcome else "") for row in await journal.rows("t", call)]
            for call in (f"c{number}" for number in range(10))
        }

    expected = {call: [(f"run {number}", str(number))] for number, won in enumerate(winners) for call in won}
    assert look(engine, found) == expected
    assert sorted(call for won in winners for call in won) == sorted(f"c{number}" for number in range(10))


def test_all_writers_see_the_same_first_answer_to_each_question(engine: Engine) -> None:
    questions = [Question("approval", f"c{number}", 1, "digest") for number in range(10)]

    async def answer(database: Database, number: int) -> list[str]:
        decisions = SqliteDecisions(database)
        mine = Answer("approve", f"writer {number}", _AT)
        return [(await decisions.insert("t", question, mine)).by for question in questions]

    standing = at_once(engine, answer)

    stored = look(engine, lambda database: SqliteDecisions(database).find_answers("t", questions))
    assert standing == [[stored[question.call_id].by for question in questions]] * WRITERS


def test_a_message_is_removed_by_one_writer_only(engine: Engine) -> None:
    async def queue(database: Database) -> list[int]:
        inbox = SqliteInbox(database, SystemClock())
        return [await inbox.queue("t", str(number), "me") for number in range(10)]

    numbers = look(engine, queue)

    async def remove(database: Database, _: int) -> list[bool]:
        inbox = SqliteInbox(database, SystemClock())
        return [await inbox.remove("t", number) for number in numbers]

    removed = at_once(engine, remove)

    assert [sum(of_one) for of_one in zip(*removed, strict=True)] == [1] * 10


def test_threads_that_are_created_and_played_at_once_are_all_whole(engine: Engine) -> None:
    async def play(database: Database, number: int) -> None:
        await ThreadTable(database, SystemClock()).create(f"t{number}", "/w", "gpt-5", "default")
        await play_turn(compile_graph(CheckpointSaver(database)), f"t{number}", "go")

    at_once(engine, play)

    def heads(database: Database) -> Awaitable[list[tuple[Any, ...]]]:
        return rows(database, "SELECT title, turns, outcome, next_nodes FROM threads")

    assert look(engine, heads) == [("go", 1, "done", "[]")] * WRITERS


def test_a_thread_is_created_once_and_all_writers_get_the_same_one(engine: Engine) -> None:
    async def create(database: Database, number: int) -> str:
        row = await ThreadTable(database, SystemClock()).create("t", f"/w{number}", "gpt-5", "default")
        return row.workspace

    assert len(set(at_once(engine, create))) == 1


def test_the_last_state_of_a_file_is_one_that_a_writer_set(engine: Engine) -> None:
    async def set_states(database: Database, number: int) -> None:
        states = SqliteFileStates(database, SystemClock())
        for count in range(10):
            await states.set("t", f"/w/{count}", str(number))

    at_once(engine, set_states)

    def found(database: Database) -> Awaitable[list[tuple[Any, ...]]]:
        return rows(database, "SELECT path, count(*) FROM file_states GROUP BY path")

    assert Counter(dict(look(engine, found))) == Counter({f"/w/{count}": 1 for count in range(10)})


def test_writers_that_die_within_a_transaction_leave_nothing_of_it_and_block_nobody(engine: Engine) -> None:
    async def queue(database: Database, number: int) -> int:
        inbox = SqliteInbox(database, SystemClock())
        if number % 2:
            return await inbox.queue("t", "whole", "me")
        return await database.write(_queue_and_die)

    at_once(engine, queue, ends={0, -signal.SIGKILL})

    waiting = look(engine, lambda database: SqliteInbox(database, SystemClock()).waiting("t"))
    assert [text for _, text in waiting] == ["whole"] * (WRITERS // 2)


def _queue_and_die(connection: Connection) -> int:
    connection.execute(
        "INSERT INTO inbox (id, thread_id, text, queued_by, queued_at) VALUES (999, 't', 'half', '', '')"
    )
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
