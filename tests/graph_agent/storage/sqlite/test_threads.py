import pytest

from graph_agent.errors import UnknownId
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadRow, ThreadTable
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.small_graph import compile_graph, play_turn

_FIRST = "2026-01-01T00:00:00.000Z"
_NEW = ThreadRow("t", "", "/w", "gpt-5", "default", _FIRST, _FIRST, None, 0, "", None)


@pytest.fixture
def threads(database: Database, clock: SteppingClock) -> ThreadTable:
    return ThreadTable(database, clock)


async def test_a_new_thread_is_listed_before_its_first_checkpoint(threads: ThreadTable) -> None:
    created = await threads.create("t", "/w", "gpt-5", "default")

    assert created == await threads.get("t") == _NEW


async def test_a_thread_that_another_process_has_just_begun_is_taken_as_it_is(threads: ThreadTable) -> None:
    await threads.create("t", "/w", "gpt-5", "default")

    begun_too = await threads.create("t", "/elsewhere", "other", "plan")

    assert begun_too == await threads.get("t") == _NEW


async def test_what_the_user_sets_stays_when_checkpoints_come(threads: ThreadTable, database: Database) -> None:
    await threads.create("t", "/w", "gpt-5", "default")
    await threads.set_title("t", "My title")
    await threads.set_mode("t", "plan")
    await threads.set_workspace("t", "/elsewhere")

    await play_turn(compile_graph(CheckpointSaver(database)), "t", "hello")

    row = await threads.get("t")
    assert row is not None
    assert (row.title, row.mode, row.workspace, row.turns, row.outcome) == (
        "My title",
        "plan",
        "/elsewhere",
        1,
        "done",
    )


async def test_the_newest_thread_of_a_workspace_is_the_one_at_work_last(
    threads: ThreadTable, database: Database
) -> None:
    for thread_id, workspace in (("old", "/w"), ("new", "/w"), ("other", "/elsewhere")):
        await threads.create(thread_id, workspace, "gpt-5", "default")
    before = await threads.newest("/w")
    await play_turn(compile_graph(CheckpointSaver(database)), "old", "hello")

    after = await threads.newest("/w")

    assert [row.thread_id for row in (before, after) if row] == ["new", "old"]
    assert await threads.newest("/nowhere") is None


async def test_a_thread_that_was_opened_and_left_is_not_the_newest_but_one_with_a_message_that_waits_is(
    threads: ThreadTable, database: Database, clock: SteppingClock
) -> None:
    await threads.create("worked", "/w", "gpt-5", "default")
    await play_turn(compile_graph(CheckpointSaver(database)), "worked", "hello")
    await threads.create("left", "/w", "gpt-5", "default")
    later = "UPDATE threads SET updated_at = '9999' WHERE thread_id = 'left'"
    await database.write(lambda connection: connection.execute(later))
    before = await threads.newest("/w")
    await SqliteInbox(database, clock).queue("left", "later", "me")

    after = await threads.newest("/w")

    assert [row.thread_id for row in (before, after) if row] == ["worked", "left"]


async def test_threads_of_sub_agents_are_not_the_newest(threads: ThreadTable, database: Database) -> None:
    await threads.create("t", "/w", "gpt-5", "default")
    await threads.create("child", "/w", "gpt-5", "default")
    await database.write(
        lambda connection: connection.execute(
            "UPDATE threads SET parent_thread = 't', parent_call = 'c' WHERE thread_id = 'child'"
        )
    )

    assert await threads.newest("/w") == _NEW


@pytest.mark.parametrize("method", ["set_title", "set_mode", "set_workspace"])
async def test_setting_something_of_an_unknown_thread_is_refused(threads: ThreadTable, method: str) -> None:
    with pytest.raises(UnknownId, match="there is no thread 't'"):
        await getattr(threads, method)("t", "x")


async def test_the_folders_of_a_thread_stay_with_it(threads: ThreadTable) -> None:
    created = await threads.create("t", "/w", "gpt-5", "default")
    await threads.set_roots("t", ("/lib", "/srv/ü"))
    row = await threads.get("t")

    assert row is not None
    assert (created.roots, row.roots) == ((), ("/lib", "/srv/ü"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("SELECT 1", [True, False]),
        ("UPDATE journal SET owner = 'a later life' WHERE thread_id = 'fork'", [False, False]),
        ("DELETE FROM threads WHERE thread_id = 'source'", [True, True]),
        ("INSERT INTO imported_checkpoints VALUES ('fork', 'x')", [True, True]),
    ],
)
async def test_a_call_of_a_fork_began_elsewhere_only_where_its_newest_attempt_came_along(
    threads: ThreadTable,
    database: Database,
    blobs: FileBlobs,
    clock: SteppingClock,
    change: str,
    expected: list[bool],
) -> None:
    journal = SqliteJournal(database, blobs, clock)
    for thread_id in ("source", "fork"):
        await threads.create(thread_id, "/w", "m", "default")
        await journal.claim(thread_id, "came along", 1, "life", None)
    await journal.claim("fork", "its own", 1, "life", None)
    await database.write(lambda one: one.execute("UPDATE threads SET parent_thread = 'source' WHERE rowid = 2"))
    await database.write(lambda one: one.execute(change))

    found = [await threads.may_have_started_elsewhere("fork", call_id) for call_id in ("came along", "its own")]
    assert found == expected
