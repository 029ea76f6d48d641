import base64
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UsageError
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.serializer import MessageDecoder
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_import import Row, import_rows, read_parts
from graph_agent.storage.sqlite.threads import SqliteInbox
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text
from tests.fakes.stepping_clock import SteppingClock
from tests.fakes.thread_files import export, reseal
from tests.graph_agent.storage.sqlite.looking import content_of, rows

_TABLES = "threads checkpoints writes journal inbox rewinds imported_checkpoints search_entries decisions"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "agent.db"
    play(path, "go", "on", replies=(calls(("c1", "read_a")), text("done")))
    return export(path, "thread-1")


Import = Callable[[str], Awaitable[None]]


@pytest.fixture
def import_file(database: Database, blobs: FileBlobs) -> Import:
    """Imports the text of a file as the thread "t"."""

    async def import_file(text: str) -> None:
        parts = [part for part in read_parts(io.StringIO(text)) if isinstance(part, Row)]
        ids, decoder = ("thread-1", "t"), MessageDecoder()
        await database.write(lambda connection: import_rows(connection, ids, parts, blobs, decoder))

    return import_file


def changed(text: str, table: str, **values: Any) -> str:
    """The file with the first row of a table changed; made where there is none."""
    document = json.loads(text)
    next(row for row in document["rows"] if row["table"] == table).update(values)
    return reseal(document)


def added(file: str, **row: Any) -> str:
    document = json.loads(file)
    document["rows"].append(row)
    return reseal(document)


async def test_rows_are_stored_under_the_id_and_their_checkpoints_noted_as_imported(
    database: Database, import_file: Import, file: str
) -> None:
    await import_file(file)

    heads = await rows(database, "SELECT thread_id, title, turns FROM threads")
    missing = await rows(
        database, "SELECT checkpoint_id FROM checkpoints EXCEPT SELECT checkpoint_id FROM imported_checkpoints"
    )
    assert (heads, missing) == ([("t", "go", 2)], [])
    with read_database(database.path) as reader:
        assert [hit.role for hit in reader.search("done")] == ["assistant"]


_REWIND = {
    "table": "rewinds",
    "id": 1,
    "checkpoint_id": "c",
    "head": "h",
    "scope": "both",
    "plan": {"files": [], "calls": [], "reverts": None},
    "status": "done",
    "at": "",
    "ended_at": None,
}


_ANSWER = {
    "table": "decisions",
    "call_id": "c1",
    "attempt": 1,
    "question": "approval",
    "args_digest": "",
    "kind": "approve",
    "args": None,
    "reason": "",
    "by": "",
    "at": "",
    "applied_at": None,
    "superseded_at": "then",
}


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("threads", {"mode": "bypassPermissions"}),
        ("threads", {"mode": "acceptEdits"}),
        ("threads", {"checkpoint_id": None}),
        ("threads", {"checkpoint_id": "elsewhere"}),
        ("checkpoints", {"type": "pickle"}),
        ("checkpoints", {"checkpoint": base64.b64encode(b"\xc1").decode()}),
        ("checkpoints", {"checkpoint": base64.b64encode(b"\x93\x01\x02\x03").decode()}),
        ("checkpoints", {"checkpoint_id": "another"}),
        ("checkpoints", {"metadata": []}),
        ("writes", {"type": "json"}),
        ("writes", {"value": ""}),
        ("transcript", {"body": []}),
        ("transcript", {"body": {"tool_calls": 7}}),
        ("call_log", {"record": {}}),
        ("call_log", {"status": "sleeping"}),
        ("call_log", {"status": "pending"}),
        ("journal", {"status": "finished"}),
        ("journal", {"outcome": {"status": "success"}}),
        ("journal", {"outcome": {"blob": "blob:sha256:0"}}),
        ("journal", {"outcome": {"status": "maybe", "output": ""}}),
        ("journal", {"intent": {"path": "a", "more": 1}}),
        ("", {**_REWIND, "status": "planned"}),
        ("", {**_REWIND, "plan": {}}),
        ("", {**_REWIND, "scope": "world"}),
        ("", {**_ANSWER, "kind": "obey"}),
        ("", {**_ANSWER, "superseded_at": None}),
        ("", {"table": "prune_points", "checkpoint_id": "c", "branch": 0, "seq": 2**70}),
    ],
)
async def test_a_row_that_this_program_does_not_write_is_refused_and_changes_nothing(
    database: Database, import_file: Import, file: str, table: str, values: dict[str, Any]
) -> None:
    before = await content_of(database, *_TABLES.split())

    with pytest.raises(UsageError, match="Nothing was changed"):
        await import_file(changed(file, table, **values) if table else added(file, **values))

    assert await content_of(database, *_TABLES.split()) == before


async def test_a_long_outcome_that_an_earlier_version_stored_is_accepted(
    database: Database, import_file: Import, blobs: FileBlobs, file: str
) -> None:
    reference = blobs.put(b'{"status": "success", "output": "ok", "display": "read it"}')

    await import_file(changed(file, "journal", outcome={"blob": reference}))

    [(outcome,)] = await rows(database, "SELECT outcome FROM journal")
    assert json.loads(outcome) == {"blob": reference}


async def test_two_rows_for_one_thing_are_refused(import_file: Import, file: str) -> None:
    document = json.loads(file)
    document["rows"].append(document["rows"][-1])

    with pytest.raises(UsageError, match="exclude each other"):
        await import_file(reseal(document))


async def test_an_id_that_anything_uses_is_taken(database: Database, import_file: Import, file: str) -> None:
    await SqliteInbox(database, SteppingClock()).queue("t", "hello", "me")

    with pytest.raises(UsageError, match="Thread 't' already exists"):
        await import_file(file)


async def test_numbers_that_are_taken_or_too_high_are_replaced(
    database: Database, import_file: Import, file: str
) -> None:
    inbox = SqliteInbox(database, SteppingClock())
    await inbox.queue("other", "mine", "me")
    queued = {"table": "inbox", "text": "theirs", "queued_by": "", "queued_at": "", "taken_at": None}
    text = added(added(file, **queued, id=1), **queued, id=2**63 - 1)
    for number, reverts in ((2**62, None), (7, 2**62)):
        plan: dict[str, Any] = {"files": [], "calls": [], "reverts": reverts}
        text = added(text, **{**_REWIND, "id": number, "plan": plan})

    await import_file(text)
    await inbox.queue("other", "again", "me")

    assert await rows(database, "SELECT id, thread_id FROM inbox") == [
        (1, "other"),
        (2, "t"),
        (3, "t"),
        (4, "other"),
    ]
    plans = await rows(database, "SELECT id, plan FROM rewinds ORDER BY id")
    assert [(number, json.loads(plan)["reverts"]) for number, plan in plans] == [(1, None), (7, 1)]


async def test_a_message_queued_later_never_looks_as_if_the_file_had_taken_it(
    database: Database, import_file: Import, file: str
) -> None:
    document = json.loads(file)
    message = next(row for row in document["rows"] if row["table"] == "transcript" and row["role"] == "user")
    message["message_id"] = "inbox-1"
    await import_file(reseal(document))
    inbox = SqliteInbox(database, SteppingClock())

    await inbox.queue("t", "new", "me")

    assert await inbox.waiting("t") == [(2, "new")]
