from graph_agent.inspect import Reader
from graph_agent.ports import Grant
from tests.fakes.database_rows import START, Rows


def test_grants_that_stand_are_told_oldest_first(rows: Rows) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)", revoked_at=START)
    rows.grant("bash(cat a)", "bash(cat b)", scope="user")

    with Reader.open(rows.path) as reader:
        told = reader.grants()

    where = {"mode": "default", "thread_id": "t1", "workspace": "/w", "call_id": "call_a", "by": "cli pid 7"}
    assert told == [
        Grant("thread", ("bash(ls)",), **where, at=START, id=1),
        Grant("user", ("bash(cat a)", "bash(cat b)"), **where, at=START, id=3),
    ]


def test_a_file_from_before_there_were_grants_has_none(rows: Rows) -> None:
    rows.execute("DROP TABLE grants")

    with Reader.open(rows.path) as reader:
        assert reader.grants() == []
