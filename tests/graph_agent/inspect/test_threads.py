import socket
import sqlite3

from graph_agent.inspect import Lease, Reader
from graph_agent.inspect.threads import ThreadSummary, read_recent, read_threads
from graph_agent.ports.background import boot_id
from graph_agent.ports.read_store import TranscriptEntry
from graph_agent.storage import open_read_store
from graph_agent.storage.sqlite import read_store
from graph_agent.storage.sqlite.read_connection import ReadConnection
from graph_agent.storage.sqlite.read_store import SqliteReadStore
from tests.fakes.database_rows import START, Rows, record_of


def test_a_thread_is_told_with_all_that_is_stored_about_it(rows: Rows, reader: Reader) -> None:
    rows.thread(
        title="Fix [red]it",
        workspace="/w",
        model="m",
        mode="plan",
        checkpoint_id="c9",
        turns=2,
        outcome="done",
        parent_thread="t0",
    )
    rows.lease(pid=1, process_started="0")
    rows.execute("INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('t1', 'more', 'me', ?)", START)

    [thread] = reader.threads()

    assert thread == ThreadSummary(
        thread_id="t1",
        title="Fix [red]it",
        workspace="/w",
        model="m",
        mode="plan",
        created_at=START,
        updated_at=START,
        checkpoint_id="c9",
        turns=2,
        outcome="done",
        parent_thread="t0",
        parent_call=None,
        queued_messages=1,
        status="idle",
        pending_approvals=0,
        interrupted_calls=0,
        answered_calls=0,
        holder=None,
        last_lease=Lease(1, "0", boot_id(), socket.gethostname(), START, None),
    )


def test_status_follows_open_calls_answers_and_the_life_of_the_holder(rows: Rows, reader: Reader) -> None:
    rows.thread("resting", updated_at="9", turns=1)
    rows.call(record_of("awaiting_approval"), "resting")
    rows.thread("asking", next_nodes=("human_approval",), updated_at="8")
    rows.call(record_of("awaiting_approval"), "asking")
    rows.call(record_of("awaiting_approval", "call_b"), "asking")
    rows.lease("asking")
    rows.thread("answered", next_nodes=("human_approval",), updated_at="7")
    rows.call(record_of("awaiting_approval"), "answered")
    rows.decision("approve", thread_id="answered")
    rows.thread("running", next_nodes=("tool_execution",), updated_at="6")
    rows.call(record_of("executing"), "running")
    rows.lease("running")
    rows.thread("killed", next_nodes=("tool_execution",), updated_at="5")
    rows.call(record_of("executing"), "killed")
    rows.call(record_of("awaiting_approval", "call_b"), "killed")
    rows.lease("killed", process_started="0")
    rows.thread("thinking", next_nodes=("reasoning",), updated_at="4")

    found = [(t.thread_id, t.status, t.pending_approvals, t.interrupted_calls) for t in reader.threads()]

    assert found == [
        ("resting", "idle", 0, 0),
        ("asking", "waiting", 2, 0),
        ("answered", "waiting", 0, 0),
        ("running", "running", 0, 0),
        ("killed", "interrupted", 1, 1),
        ("thinking", "resumable", 0, 0),
    ]


def test_a_call_that_finished_before_its_process_died_is_not_interrupted(rows: Rows, reader: Reader) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.journal("success", {"status": "success", "output": "built", "error": None})

    [thread] = reader.threads()

    assert (thread.status, thread.interrupted_calls) == ("resumable", 0)


def test_a_thousand_threads_take_two_statements(rows: Rows) -> None:
    rows.execute("BEGIN")
    for number in range(1000):
        rows.thread(f"thread-{number:04}", next_nodes=("human_approval",))
        rows.call(record_of("awaiting_approval", f"call_{number}"), f"thread-{number:04}")
    rows.execute("COMMIT")
    statements: list[str] = []
    connection = sqlite3.connect(f"file:{rows.path}?mode=ro", uri=True)
    connection.set_trace_callback(statements.append)
    database = SqliteReadStore(ReadConnection(rows.path, connection))

    found = read_threads(database)

    database.close()
    assert len([thread for thread in found if thread.status == "waiting"]) == 1000
    assert len([text for text in statements if not text.startswith("--")]) == 2


def test_calls_that_are_over_cost_a_list_of_threads_nothing(rows: Rows) -> None:
    database = ReadConnection.open(rows.path)

    select = read_store._THREADS.format(calls="INDEXED BY call_log_open WHERE TRUE")
    plan = [row[3] for row in database.rows(f"EXPLAIN QUERY PLAN {select}")]

    database.close()
    assert [step for step in plan if step.startswith(("SCAN l", "SEARCH l"))] == [
        "SCAN l USING INDEX call_log_open"
    ]


def test_a_sub_agent_waits_for_its_parent_while_that_is_at_work(rows: Rows, reader: Reader) -> None:
    rows.thread("working", next_nodes=("tool_execution",), updated_at="9")
    rows.lease("working")
    rows.thread("resting", updated_at="8", turns=1)
    for parent in ("working", "resting"):
        child = f"of {parent}"
        rows.thread(child, next_nodes=("human_approval",), updated_at="1", parent_thread=parent, parent_call="c")
        rows.call(record_of("awaiting_approval"), child)

    found = {t.thread_id: (t.status, t.pending_approvals) for t in reader.threads()}

    assert (found["working"], found["resting"]) == (("waiting", 1), ("idle", 0))


def test_messages_of_one_thread_come_in_the_order_in_which_they_came(rows: Rows) -> None:
    rows.thread()
    rows.message("user", {"content": "go"})
    rows.message("user", {"content": "other"}, "t2")
    rows.message("assistant", {"content": "done", "usage": {"input_tokens": 1}})
    database = open_read_store(rows.path)

    found = list(database.messages("t1"))

    database.close()
    assert found == [
        TranscriptEntry(1, 0, "m1", "user", {"content": "go"}, "c1", START),
        TranscriptEntry(2, 0, "m2", "assistant", {"content": "done", "usage": {"input_tokens": 1}}, "c1", START),
    ]


def test_of_other_branches_only_what_the_head_rests_on_is_shown_unless_all_is_asked_for(rows: Rows) -> None:
    rows.thread(branch=2)
    for text in ("shared", "left", "on branch 1", "left too", "on branch 2"):
        rows.message("user", {"content": text})
    rows.execute("UPDATE transcript SET branch = CASE WHEN seq < 3 THEN 0 WHEN seq < 5 THEN 1 ELSE 2 END")
    rows.execute("INSERT INTO branches VALUES ('t1', 1, 0, 1, 'c2', ''), ('t1', 2, 1, 3, 'c3', '')")
    database = open_read_store(rows.path)

    shown = [entry.seq for entry in database.messages("t1")]
    everything = [(entry.seq, entry.branch) for entry in database.messages("t1", all_branches=True)]

    database.close()
    assert shown == [1, 3, 5]
    assert everything == [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]


def test_the_end_of_a_conversation_is_read_alone_and_what_stands_before_it_is_counted(rows: Rows) -> None:
    rows.thread()
    for role in ("system", "user", "assistant", "user", "tool", "assistant", "user", "assistant"):
        rows.message(role, {"content": role})
    database = open_read_store(rows.path)

    found = [
        read_recent(database, "t1", 3),
        read_recent(database, "t1", 100, turns=2),
        read_recent(database, "t1", 4, turns=2),
        read_recent(database, "t1", 100, turns=9),
    ]

    database.close()
    told = [([entry.seq for entry in recent.entries], recent.earlier) for recent in found]
    assert told == [([6, 7, 8], 5), ([4, 5, 6, 7, 8], 2), ([5, 6, 7, 8], 3), ([2, 3, 4, 5, 6, 7, 8], 0)]
