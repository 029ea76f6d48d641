from graph_agent.inspect import Reader
from tests.fakes.database_rows import Rows


def test_the_folders_of_a_thread_are_told(rows: Rows) -> None:
    rows.thread("t1", add_dirs='["/lib", "/srv/x"]')
    rows.thread("t2")

    with Reader.open(rows.path) as reader:
        assert (reader.roots("t1"), reader.roots("t2")) == (("/lib", "/srv/x"), ())


def test_a_file_from_before_there_were_any_has_none(rows: Rows) -> None:
    rows.thread("t1")
    rows.execute("ALTER TABLE threads DROP COLUMN add_dirs")

    with Reader.open(rows.path) as reader:
        assert (reader.roots("t1"), reader.thread("t1").thread_id) == ((), "t1")
