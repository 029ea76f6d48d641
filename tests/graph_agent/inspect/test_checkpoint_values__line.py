import sqlite3
from contextlib import closing
from pathlib import Path

from graph_agent.inspect.checkpoint_values import line_to
from graph_agent.inspect.connection import ReadOnlyDatabase
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


def line_of(path: Path, checkpoint_id: str) -> list[tuple[str, int]]:
    database = ReadOnlyDatabase.open(path)
    [(thread_id,)] = database.rows("SELECT thread_id FROM threads")
    line = [
        (stored.metadata["source"], stored.metadata["step"])
        for stored in line_to(database, thread_id, checkpoint_id)
    ]
    database.close()
    return line


def test_the_line_leads_back_to_the_first_checkpoint(tmp_path: Path) -> None:
    (head,) = play(tmp_path / "a.db", "go", replies=(text("a"),))

    assert line_of(tmp_path / "a.db", head) == [("loop", 1), ("loop", 0), ("input", -1)]
    assert line_of(tmp_path / "a.db", "unknown") == []


def test_a_line_that_bites_its_own_tail_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (head,) = play(path, "go", replies=(text("a"),))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = ? WHERE parent_checkpoint_id IS NULL", (head,)
        )
    connection.close()

    assert line_of(path, head) == [("loop", 1), ("loop", 0), ("input", -1)]
