"""Store and inspector share nothing but the file format: what one writes, the other must be able to show."""

import json
import os
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database, suggest_checkpoints, suggest_threads
from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Answer, Outcome, Question, Scope
from graph_agent.storage import open_blobs, thread_lock
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadTable
from tests.fakes.scripted_model import ScriptedModel, calls
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, config_of, play_turn
from tests.scenarios.stage import THREAD, Stage


@pytest.fixture
async def database(database: Database) -> Database:
    await ThreadTable(database, SteppingClock()).create("t", "/w", "gpt-5", "plan")
    return database


async def test_a_thread_that_waits_is_shown_with_its_line_its_calls_and_its_question(database: Database) -> None:
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "please look", answer=False)
    await SqliteInbox(database, SteppingClock()).queue("t", "and then", "chat")

    with read_database(database.path) as reader:
        assert reader.damaged_rows() == []
        (line,) = reader.threads()
        inspection = reader.inspection("t")
        waiting = [(view.record["call_id"], view.is_waiting) for view in reader.approvals()]
        shortened = reader.resolve("ll-1-z").id

    shown = (line.title, line.workspace, line.mode, line.turns, line.status, line.queued_messages)
    assert shown == ("please look", "/w", "plan", 1, "waiting", 1)
    assert (waiting, shortened) == ([(f"call-1-{name}", True) for name in "zyx"], "call-1-z")
    assert inspection.state.next == ("ask_person",)
    assert [question["value"] for question in inspection.state.interrupts] == [
        {"ids": ["call-1-z", "call-1-y", "call-1-x"]}
    ]


async def test_the_ids_that_completion_offers_are_those_that_begin_or_end_with_what_was_typed(
    database: Database,
) -> None:
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "please look", answer=False)
    path = database.path
    [thread] = suggest_threads(path, "", 100)
    newest = next(suggest_checkpoints(path, "", 100))

    assert (thread.thread_id, thread.title, thread.is_idle) == ("t", "please look", False)
    for known, suggest in ((thread.thread_id, suggest_threads), (newest.checkpoint_id, suggest_checkpoints)):
        for typed in (known, known[:1], known[-1:]):
            assert known in [found[0] for found in suggest(path, typed, 1_000_000_000)]
        assert list(suggest(path, f"{known}-", 100)) == []


async def test_an_answer_in_the_table_ends_the_waiting(database: Database) -> None:
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "please look", answer=False)
    answer = Answer("reject", "cli", "2026-01-01T00:00:00.000Z", reason="no")
    await SqliteDecisions(database).insert("t", Question("approval", "call-1-z", 1, ""), answer)

    with read_database(database.path) as reader:
        view = reader.call("t", "call-1-z")

    assert view.answer is not None
    assert (view.is_waiting, view.answer.kind, view.answer.reason) == (False, "reject", "no")


async def test_the_state_shown_is_the_state_the_graph_has_after_many_turns(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))
    for number in range(4):
        await play_turn(graph, "t", str(number))
    live = (await graph.aget_state(config_of("t"))).values

    with read_database(database.path) as reader:
        shown = reader.inspection("t")
        transcript = [entry.message_id for entry in reader.transcript("t")]

    assert [message["id"] for message in shown.state.values["messages"]] == [
        message.id for message in live["messages"]
    ]
    assert shown.state.values["calls"] == live["calls"]
    assert transcript == [message.id for message in live["messages"]]
    assert shown.status == "idle"


async def test_the_holder_is_seen_alive_and_gone_after_release(database: Database) -> None:
    lock = thread_lock(database, SteppingClock())
    await lock.acquire("t", "run 1")
    with read_database(database.path) as reader:
        held = reader.thread("t").holder
    await lock.release()

    with read_database(database.path) as reader:
        released = reader.thread("t").holder

    assert held is not None
    assert (held.pid, released) == (os.getpid(), None)


async def test_a_finished_attempt_is_shown_though_the_graph_has_not_taken_it_in_yet(database: Database) -> None:
    graph = compile_graph(CheckpointSaver(database))
    await play_turn(graph, "t", "please look", answer=False)
    journal = SqliteJournal(database, open_blobs(database.path), SteppingClock())
    big = "x" * INLINE_BYTES
    await journal.claim("t", "call-1-z", 1, "run 1", None)
    await journal.finish("t", "call-1-z", 1, "run 1", Outcome("success", big))
    await database.write(
        lambda connection: connection.execute(
            "UPDATE call_log SET record = json_set(record, '$.status', 'executing') WHERE call_id = 'call-1-z'"
        )
    )

    with read_database(database.path) as reader:
        record = reader.call("t", "call-1-z").record

    assert (record["status"], record["result"]) == ("success", big)


async def test_a_long_result_is_stored_once_and_shown_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage.db", ScriptedModel(calls(("c", "read_a"))), _Long())
    async with stage.open_session() as session:
        await session.send("go")

    with read_database(stage.database) as reader:
        shown = reader.call(THREAD, "c").record["result"]
    async with await Database.open(stage.database) as opened:
        [(record,)] = await opened.run(
            lambda connection: connection.execute("SELECT record FROM call_log").fetchall()
        )
    assert (shown, "result" in json.loads(record)) == ("long " * 100, False)


class _Long(ScriptedToolbox):
    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        return Outcome("success", "long " * 100)
