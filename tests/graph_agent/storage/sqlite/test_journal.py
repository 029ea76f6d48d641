from graph_agent.ports import Journal, Outcome
from graph_agent.storage.sqlite.database import Database
from tests.graph_agent.storage.sqlite.looking import statements_of

_DONE = Outcome("success", "ok", summary="read it", metadata={"exit_code": 0})


async def test_a_call_costs_two_transactions(database: Database, journal: Journal) -> None:
    seen = await statements_of(database)

    await journal.claim("t", "c", 1, "run", None)
    await journal.finish("t", "c", 1, "run", _DONE)

    assert seen == ["BEGIN", "SELECT", "SELECT", "INSERT", "COMMIT", "BEGIN", "UPDATE", "COMMIT"]
