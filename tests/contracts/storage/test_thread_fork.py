import pytest

from graph_agent.errors import UnknownId
from graph_agent.ports import Outcome
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.thread_fork import Fork
from graph_agent.storage.sqlite.threads import ThreadTable
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.looking import rows
from tests.graph_agent.storage.sqlite.small_graph import Graph, compile_graph, config_of, play_turn

_AT = "2026-11-28T12:00:00.000Z"
_SEEN = "INSERT INTO file_states (thread_id, path, sha256, at) VALUES (?, ?, ?, ?)"


@pytest.fixture
async def head(database: Database) -> str:
    await ThreadTable(database, SteppingClock()).create("t", "/w", "gpt-5", "plan")
    await play_turn(compile_graph(CheckpointSaver(database)), "t", "hello")
    [(checkpoint_id,)] = await rows(database, "SELECT checkpoint_id FROM threads")
    return str(checkpoint_id)


async def test_a_fork_has_the_state_the_list_entry_and_the_journal_of_its_origin(
    database: Database, blobs: FileBlobs, head: str, saver: CheckpointSaver, graph: Graph
) -> None:
    journal = SqliteJournal(database, blobs, SteppingClock())
    await journal.claim("t", "call-1-z", 1, "run", None)
    await journal.finish("t", "call-1-z", 1, "run", Outcome("success", "read"))
    await journal.claim("t", "of another branch", 1, "run", None)

    await saver.fork(Fork("t", head, "f", _AT))

    states = [(await graph.aget_state(config_of(thread_id))).values for thread_id in ("t", "f")]
    listed = await rows(
        database,
        "SELECT title, workspace, mode, turns, parent_thread, updated_at, checkpoint_id "
        "FROM threads WHERE thread_id = 'f'",
    )
    assert states[0] == states[1] != {}
    assert listed == [("hello", "/w", "plan", 1, "t", _AT, head)]
    assert await journal.rows("f", "call-1-z") == await journal.rows("t", "call-1-z")
    assert await journal.rows("f", "of another branch") == []


async def test_a_fork_knows_only_file_states_up_to_its_checkpoint(database: Database, head: str) -> None:
    seen = [("t", "/w/early", "d", "2000-01-01T00:00:00.000Z"), ("t", "/w/late", "d", "2999-01-01T00:00:00.000Z")]
    await database.write(lambda connection: connection.executemany(_SEEN, seen))

    await CheckpointSaver(database).fork(Fork("t", head, "f", _AT))

    assert await rows(database, "SELECT path FROM file_states WHERE thread_id = 'f'") == [("/w/early",)]


async def test_an_unknown_checkpoint_leaves_no_trace_of_a_fork(database: Database, head: str) -> None:
    with pytest.raises(UnknownId, match="'t' has no checkpoint 'nowhere'"):
        await CheckpointSaver(database).fork(Fork("t", "nowhere", "f", _AT))

    assert await rows(database, "SELECT thread_id FROM threads") == [("t",)]
