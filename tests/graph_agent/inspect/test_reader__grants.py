from graph_agent.app.reader import read_database
from graph_agent.ports import Grant
from tests.fakes.database_rows import START, Rows


def test_grants_that_stand_are_told_oldest_first(rows: Rows) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)", revoked_at=START)
    rows.grant("bash(cat a)", "bash(cat b)", scope="user")

    with read_database(rows.path) as reader:
        told = reader.grants()

    where = {"mode": "default", "thread_id": "t1", "workspace": "/w", "call_id": "call_a", "by": "cli pid 7"}
    assert told == [
        Grant("thread", ("bash(ls)",), **where, at=START, id=1),
        Grant("user", ("bash(cat a)", "bash(cat b)"), **where, at=START, id=3),
    ]


def test_the_folders_of_a_thread_are_reported(rows: Rows) -> None:
    rows.thread("t1", add_dirs='["/lib", "/srv/x"]')
    rows.thread("t2")

    with read_database(rows.path) as reader:
        assert (reader.roots("t1"), reader.roots("t2")) == (("/lib", "/srv/x"), ())
