from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.transcript import TranscriptEntry, read_transcript
from tests.fakes.database_rows import START, Rows


def test_messages_of_one_thread_come_in_the_order_in_which_they_came(rows: Rows) -> None:
    rows.message("user", {"content": "go"})
    rows.message("user", {"content": "other"}, "t2")
    rows.message("assistant", {"content": "done", "usage": {"input_tokens": 1}})
    database = ReadOnlyDatabase.open(rows.path)

    found = read_transcript(database, "t1")

    database.close()
    assert found == [
        TranscriptEntry(1, 0, "m1", "user", {"content": "go"}, "c1", START),
        TranscriptEntry(2, 0, "m2", "assistant", {"content": "done", "usage": {"input_tokens": 1}}, "c1", START),
    ]
