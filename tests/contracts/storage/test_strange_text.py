from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage

from graph_agent.app.reader import read_database
from graph_agent.ports import Answer, FileRestoration, Grant, Intent, Outcome, Question, Rewind
from graph_agent.ports.background import NewShell
from graph_agent.ports.stored_text import storable
from graph_agent.ports.time_travel import FileImage
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal, SqliteShells
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox, ThreadTable
from tests.fakes.stepping_clock import SteppingClock
from tests.graph_agent.storage.sqlite.small_graph import Graph, config_of

_AT = "2026-01-01T00:00:00.000Z"
_ASKED = Question("approval", "c", 1, "digest")
TEXTS = {
    "empty": "",
    "a NUL": "before\0after",
    "escapes that look like one": "\\u0000 \\\\u0000 \\0 \ufffd \uf8f0 \uf8f00",
    "half a character": "half \ud83d and \udcff",
    "emoji of several characters": "👩‍👩‍👧 🏳️‍🌈 é",
    "what statements are made of": "' \" \\ % %s %(x)s ? ?1 :name $1 ; -- /* */ ::text",
    "what JSON is made of": '{"a": ["\\"", null]} \t\r\n\x0b\x1b\x7f',
    "right to left and odd line ends": "\u202eשלום\u2028\u2029\u0085\ufeff",
    "a megabyte": "ä" * 500_000,
}
Keep = Callable[[Database, SqliteJournal, str], Awaitable[object]]


async def _message(database: Database, _: SqliteJournal, text: str) -> object:
    inbox = SqliteInbox(database, SteppingClock())
    await inbox.queue("t", text, text)
    return [text for _, text in await inbox.waiting("t")]


async def _reason(database: Database, _: SqliteJournal, text: str) -> object:
    decisions = SqliteDecisions(database)
    await decisions.insert("t", _ASKED, Answer("reject", text, _AT, reason=text))
    answer = (await decisions.find_answers("t", [_ASKED]))["c"]
    return [answer.reason] if answer.by == answer.reason else [answer.by, answer.reason]


async def _arguments(database: Database, _: SqliteJournal, text: str) -> object:
    decisions = SqliteDecisions(database)
    await decisions.insert("t", _ASKED, Answer("edit", "me", _AT, arguments={"command": text}))
    answer = (await decisions.find_answers("t", [_ASKED]))["c"]
    return list((answer.arguments or {}).values())


async def _rule(database: Database, _: SqliteJournal, text: str) -> object:
    grant = Grant("user", (text,), "default", "t", text, "c", "me", _AT, folder=text)
    await SqliteDecisions(database).insert("t", _ASKED, Answer("approve", "me", _AT, grant=grant))
    [found] = await SqliteGrants(database).in_force("t", "/w")
    assert found == replace(grant, rules=found.rules, workspace=storable(text), folder=storable(text), id=1)
    return list(found.rules)


async def _outcome(_: Database, journal: SqliteJournal, text: str) -> object:
    await journal.claim("t", "c", 1, "run", None)
    await journal.finish("t", "c", 1, "run", Outcome("success", text, metadata={"diff": text}))
    [row] = await journal.rows("t", "c")
    assert row.outcome is not None
    return [*{row.outcome.output, row.outcome.metadata["diff"]}]


async def _intent(_: Database, journal: SqliteJournal, text: str) -> object:
    await journal.claim("t", "c", 1, "run", Intent(text, None, "f" * 64))
    return [row.intent and row.intent.path for row in await journal.rows("t", "c")]


async def _call(_: Database, journal: SqliteJournal, text: str) -> object:
    call_id = text.replace("\0", "")[:1000]  # SQLite's JSON functions end a text at a NUL.
    await journal.claim("t", call_id, 1, "run", None)
    assert await journal.known_ids("t", [call_id, "other"]) == {storable(call_id)}
    [row] = await journal.rows("t", call_id)
    assert row.call_id == storable(call_id)
    return [text]


async def _path(database: Database, _: SqliteJournal, text: str) -> object:
    states = SqliteFileStates(database, SteppingClock())
    await states.set("t", text[:1000], "digest")
    assert await states.get("t", text[:1000]) == "digest"
    return [storable(text)]


async def _title(database: Database, _: SqliteJournal, text: str) -> object:
    threads = ThreadTable(database, SteppingClock())
    await threads.create("t", text, text, "default")
    await threads.set_title("t", text)
    await threads.set_roots("t", [text])
    row = await threads.get("t")
    return [] if row is None else list({row.title, row.workspace, row.model, *row.roots})


async def _command(database: Database, _: SqliteJournal, text: str) -> object:
    shells = SqliteShells(database, SteppingClock())
    await shells.add(NewShell("t", "c", 1, text, text))
    return list(
        {part for found in await shells.of_thread("t") for part in (found.shell.command, found.shell.folder)}
    )


async def _rewind(database: Database, _: SqliteJournal, text: str) -> object:
    rewinds = SqliteRewinds(database, SteppingClock())
    await rewinds.plan(Rewind("t", "c1", "c2", "both", (FileRestoration(text, FileImage(), FileImage()),)))
    found = await rewinds.unfinished("t")
    return [one.path for one in found.files] if found else []


async def _write(database: Database, _: SqliteJournal, text: str) -> object:
    saver = CheckpointSaver(database)
    maps: dict[str, dict[str, object]] = {
        "channel_values": {"a": text},
        "channel_versions": {},
        "versions_seen": {},
    }
    metadata: dict[str, object] = {"source": "loop", "step": 1, "note": storable(text).replace("\0", "")}
    checkpoint = {"v": 4, "id": "1", "ts": _AT, **maps}
    config = await saver.aput(config_of("t"), checkpoint, metadata, {})  # type: ignore[arg-type]  # plain values
    await saver.aput_writes(config, [("a", text)], "task")
    found = await saver.aget_tuple(config_of("t"))
    assert found is not None
    assert found.metadata == metadata
    return [*{found.checkpoint["channel_values"]["a"], *(value for *_, value in found.pending_writes or ())}]


KEEPERS: tuple[Keep, ...] = (
    _message, _reason, _arguments, _rule, _outcome, _intent, _call, _path, _title, _command, _rewind, _write,
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("keep", KEEPERS, ids=[keep.__name__.strip("_") for keep in KEEPERS])
async def test_any_text_comes_back_and_half_a_character_as_a_question_mark(
    database: Database, journal: SqliteJournal, keep: Keep, text: str
) -> None:
    assert await keep(database, journal, text) in ([text], [storable(text)])


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_message_of_any_text_is_shown_as_the_graph_has_it(
    database: Database, graph: Graph, text: str
) -> None:
    await ThreadTable(database, SteppingClock()).create("t", "/w", "gpt-5", "default")
    message = HumanMessage(text, id="m")
    await graph.ainvoke({"messages": [message]}, config_of("t"), durability="sync")

    with read_database(database.path) as reader:
        [shown] = [entry.body["content"] for entry in reader.transcript("t") if entry.role == "user"]
        found = [hit.message_id for hit in reader.search(storable(text)[:20])]

    assert (shown, found) == (storable(text), ["m"] if text.split() else [])
