from graph_agent.config.keys import flattened


def test_a_table_that_is_a_value_stays_whole() -> None:
    tables = {"model": {"headers": {"X-A": "b"}}, "mode": "plan"}

    assert dict(flattened(tables)) == {"model.headers": {"X-A": "b"}, "mode": "plan"}
