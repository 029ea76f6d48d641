from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.threads import SqliteFileStates
from tests.fakes.stepping_clock import SteppingClock


async def test_the_last_state_of_a_file_is_known_per_thread(database: Database, clock: SteppingClock) -> None:
    states = SqliteFileStates(database, clock)
    await states.set("t", "/w/a", "old")
    await states.set("t", "/w/a", "new")
    await states.set("t", "/w/\udcff", "odd name")

    found = [await states.get(*key) for key in [("t", "/w/a"), ("t", "/w/\udcff"), ("t", "/w/b"), ("u", "/w/a")]]

    assert found == ["new", "odd name", None, None]
