from graph_agent.inspect.threads import read_recent
from graph_agent.ports.read_store import TranscriptEntry
from graph_agent.storage.sqlite.read_store import SqliteReadStore
from tests.fakes.database_rows import START, Rows


def test_messages_of_one_thread_come_in_the_order_in_which_they_came(rows: Rows) -> None:
    rows.thread()
    rows.message("user", {"content": "go"})
    rows.message("user", {"content": "other"}, "t2")
    rows.message("assistant", {"content": "done", "usage": {"input_tokens": 1}})
    database = SqliteReadStore.open(rows.path)

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
    database = SqliteReadStore.open(rows.path)

    shown = [entry.seq for entry in database.messages("t1")]
    everything = [(entry.seq, entry.branch) for entry in database.messages("t1", all_branches=True)]

    database.close()
    assert shown == [1, 3, 5]
    assert everything == [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)]


def test_the_end_of_a_conversation_is_read_alone_and_what_stands_before_it_is_counted(rows: Rows) -> None:
    rows.thread()
    for role in ("system", "user", "assistant", "user", "tool", "assistant", "user", "assistant"):
        rows.message(role, {"content": role})
    database = SqliteReadStore.open(rows.path)

    found = [
        read_recent(database, "t1", 3),
        read_recent(database, "t1", 100, turns=2),
        read_recent(database, "t1", 4, turns=2),
        read_recent(database, "t1", 100, turns=9),
    ]

    database.close()
    told = [([entry.seq for entry in recent.entries], recent.earlier) for recent in found]
    assert told == [([6, 7, 8], 5), ([4, 5, 6, 7, 8], 2), ([5, 6, 7, 8], 3), ([2, 3, 4, 5, 6, 7, 8], 0)]
