from graph_agent.app.reader import read_database
from graph_agent.inspect.calls import read_leases, view_call
from graph_agent.storage.sqlite.read_store import SqliteReadStore
from tests.fakes.database_rows import START, Rows, record_of


def test_every_lease_is_known_and_whose_process_lives(rows: Rows) -> None:
    rows.lease("living")
    rows.lease("dead", process_started="0")
    rows.lease("ended", ended_at=START)
    database = SqliteReadStore.open(rows.path)

    leases = read_leases(database)

    database.close()
    assert set(leases.by_thread) == {"living", "dead", "ended"}
    assert leases.held == {"living"}


def test_a_call_that_ended_together_with_its_process_while_we_read_is_not_taken_for_broken_off(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing"))
    rows.lease(process_started="0")
    database = SqliteReadStore.open(rows.path)
    leases = read_leases(database)

    rows.execute("UPDATE call_log SET status = 'success', record = json_set(record, '$.status', 'success')")
    rows.execute("UPDATE threads SET next_nodes = '[]'")
    [call] = (view_call(call, is_held="t1" in leases.held) for call in database.calls())

    database.close()
    assert call.record["status"] == "success"
    with read_database(rows.path) as reader:
        assert reader.thread("t1").status == "idle"
