import ormsgpack
import pytest

from graph_agent.errors import InternalError, UnknownId
from graph_agent.inspect import CallView, Reader
from graph_agent.ports import Grant
from tests.fakes.database_rows import START, Rows, record_of


def _checkpoint(rows: Rows, checkpoint_id: str, node: str, status: str) -> None:
    content = {
        "v": 4,
        "id": checkpoint_id,
        "ts": "",
        "versions_seen": {},
        "channel_values": {f"branch:to:{node}": None, "calls": {"call_a": record_of(status)}},
        "channel_versions": {f"branch:to:{node}": "1", "calls": "1"},
    }
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
        """ VALUES ('t1', ?, 'msgpack', ?, '{"step": 1, "source": "loop"}')""",
        checkpoint_id,
        ormsgpack.packb(content),
    )


def test_a_closed_reader_reads_no_more(reader: Reader) -> None:
    reader.threads()
    reader.close()

    with pytest.raises(InternalError, match="after it was closed"):
        reader.threads()


def test_the_calls_of_a_head_are_shown_as_the_next_run_would_find_them(rows: Rows, reader: Reader) -> None:
    rows.thread(next_nodes=("tool_execution",), checkpoint_id="c2")
    _checkpoint(rows, "c2", "tool_execution", "executing")

    dead = reader.inspection("t1")
    rows.lease()
    alive = reader.inspection("t1")

    interrupted = record_of("interrupted", reason="never_started", started=False, stored_status="executing")
    assert (dead.status, dead.calls) == ("interrupted", (CallView("t1", interrupted),))
    assert (alive.status, alive.calls) == ("running", (CallView("t1", record_of("executing")),))


def test_a_call_that_finished_since_an_older_checkpoint_has_its_result(rows: Rows, reader: Reader) -> None:
    rows.thread(checkpoint_id="c2")
    rows.lease()
    _checkpoint(rows, "c1", "human_approval", "awaiting_approval")
    _checkpoint(rows, "c2", "observation", "success")
    rows.decision("approve")
    rows.journal("success", {"output": "built"})

    older = reader.inspection("t1", "c1")

    [call] = older.calls
    assert (call.record["status"], call.record["result"]) == ("success", "built")
    assert (older.status, older.state.next, older.state.is_head) == ("resumable", ("human_approval",), False)


def test_a_thread_without_a_checkpoint_has_no_state_to_show(rows: Rows, reader: Reader) -> None:
    rows.thread()

    with pytest.raises(UnknownId, match="'t1' has no checkpoint yet"):
        reader.inspection("t1")


def test_grants_that_stand_are_told_oldest_first(rows: Rows, reader: Reader) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)", revoked_at=START)
    rows.grant("bash(cat a)", "bash(cat b)", scope="user")

    told = reader.grants()

    where = ("default", "t1", "/w", "call_a", "cli pid 7", START)
    assert told == [
        Grant("thread", ("bash(ls)",), *where, id=1),
        Grant("user", ("bash(cat a)", "bash(cat b)"), *where, id=3),
    ]


def test_the_folders_of_a_thread_are_reported(rows: Rows, reader: Reader) -> None:
    rows.thread("t1", add_dirs='["/lib", "/srv/x"]')
    rows.thread("t2")

    assert (reader.roots("t1"), reader.roots("t2")) == (("/lib", "/srv/x"), ())
