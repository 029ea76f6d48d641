from pathlib import Path

from graph_agent.app.reader import read_database
from tests.fakes.database_rows import Rows


def test_checkpoints_are_offered_by_both_ends_of_their_ids_newest_first_and_a_forks_copy_once(
    tmp_path: Path,
) -> None:
    rows = Rows(tmp_path / "a.db")
    rows.thread("t1", title="Build it")
    rows.thread("t2", title="A fork")
    for thread, checkpoint in (("t1", "1f01-aa"), ("t1", "1f02-bb"), ("t2", "1f01-aa"), ("t2", "1f03-ab")):
        rows.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
            " VALUES (?, ?, 'json', '{}', '{}')",
            thread,
            checkpoint,
        )
    rows.close()

    with read_database(rows.path) as reader:
        found = [reader.suggest_checkpoints(typed, most) for typed, most in (("", 2), ("1f01", 9), ("b", 9))]

    newest, first, ending = (("1f03-ab", "A fork"), ("1f01-aa", "Build it"), ("1f02-bb", "Build it"))
    assert found == [[newest, ending], [first], [newest, ending]]
