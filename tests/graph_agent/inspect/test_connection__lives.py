from graph_agent.inspect import Reader
from graph_agent.inspect.calls import read_calls
from graph_agent.inspect.connection import ReadOnlyDatabase, read_leases
from tests.fakes.database_rows import START, Rows, record_of


def test_every_lease_is_known_and_whose_process_lives(rows: Rows) -> None:
    rows.lease("living")
    rows.lease("dead", process_started="0")
    rows.lease("ended", ended_at=START)
    database = ReadOnlyDatabase.open(rows.path)

    leases = read_leases(database)

    database.close()
    assert set(leases.leases) == {"living", "dead", "ended"}
    assert leases.held == {"living"}


def test_a_call_that_ended_together_with_its_process_while_we_read_is_not_taken_for_broken_off(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.lease(process_started="0")
    database = ReadOnlyDatabase.open(rows.path)
    leases = read_leases(database)

    rows.execute("UPDATE ledger SET status = 'success', record = json_set(record, '$.status', 'success')")
    rows.execute("UPDATE threads SET next_nodes = '[]'")
    [call] = read_calls(database, leases)

    database.close()
    assert call.record["status"] == "success"
    with Reader.open(rows.path) as reader:
        assert reader.thread("t1").status == "idle"
