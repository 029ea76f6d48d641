from graph_agent.config.keys import flatten_tables


def test_a_table_that_is_a_value_stays_whole() -> None:
    tables = {"model": {"headers": {"X-A": "b"}}, "mode": "plan"}

    assert dict(flatten_tables(tables)) == {"model.headers": {"X-A": "b"}, "mode": "plan"}
