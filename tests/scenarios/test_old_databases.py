"""Databases and exports of the last version before schema 13, one per state of a call, read and resumed today.

`old_databases/make.py.txt` made them; it runs in a checkout of that version only.
"""

import json
import lzma
import socket
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.thread_import import import_thread
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.health import check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from tests.fakes.scripted_model import ScriptedModel, text
from tests.scenarios.family import PARENT, Family, TaskModel
from tests.scenarios.stage import THREAD, Stage, finish_questions

_FILES = Path(__file__).with_name("old_databases")


@dataclass(frozen=True)
class Case:
    """What a state shows before it is migrated, and what comes of it when everything is approved and retried."""

    status: str
    calls: dict[str, str]
    asked: tuple[str, ...] = ()
    """Calls that are asked about at the start."""
    ran: tuple[str, ...] = ()
    answer: str = "end"
    after: str = "success"
    """Status of every call in the end, except of those that had ended."""


_ENDED = {"r": "success", "f": "error", "d": "cancelled"}
_CASES = {
    "finished": Case("idle", _ENDED, answer="all done"),
    "asking": Case("waiting", {"r": "pending", "w": "awaiting_approval"}, ("w",), ("r", "w")),
    "queued": Case("waiting", {"w": "awaiting_approval"}, ("w",), ("w",)),
    "answered": Case("waiting", {"w": "awaiting_approval"}, (), ("w",)),
    "approved": Case("interrupted", {"w": "interrupted"}, ("w",), ("w",)),
    "executing": Case("interrupted", {"w": "interrupted"}, ("w",), ("w",)),
    "recorded": Case("resumable", {"w": "success"}),
    "interrupted": Case("interrupted", {"w": "interrupted"}, ("w",), ("w",)),
    "rewound": Case("waiting", {"w": "awaiting_approval"}, ("w",), ("w",)),
    "pruned": Case("idle", {}, answer="answer 3"),
    "shells": Case("idle", _ENDED, answer="all done"),
}


def _unpack(name: str, path: Path) -> Path:
    """Write the database of a state, as one that was used on this machine."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(lzma.decompress((_FILES / f"{name}.db.xz").read_bytes()))
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE leases SET host = ?", (socket.gethostname(),))
    return path


def _statuses(path: Path) -> dict[str, str]:
    with read_database(path) as reader:
        return {view.record["call_id"]: view.record["status"] for view in reader.calls(THREAD)}


@pytest.mark.parametrize("name", _CASES)
async def test_an_old_database_is_read_as_it_is_then_migrated_and_resumed(name: str, tmp_path: Path) -> None:
    case, path = _CASES[name], _unpack(name, tmp_path / "data" / "agent.db")
    before = path.read_bytes()
    with read_database(path) as reader:
        thread, inspection = reader.thread(THREAD), reader.inspection(THREAD)
        wrong = reader.inconsistencies(THREAD)
    shown = (thread.status, inspection.status, _statuses(path), wrong)
    left = path.read_bytes()

    stage = Stage(path, ScriptedModel())
    async with stage.open_session() as session:
        opened = await session.start()
        resumed = await finish_questions(session, opened)
        sent = await session.send("and now")

    assert shown == (case.status, case.status, case.calls, [])
    assert left == before
    assert tuple(item.question.call_id for item in opened.questions) == case.asked
    assert (resumed.answer, tuple(call_id for call_id, _ in stage.toolbox.ran)) == (case.answer, case.ran)
    assert _statuses(path) == {**dict.fromkeys(case.calls, case.after), **(_ENDED if case.calls == _ENDED else {})}
    assert sent.answer == "end"
    health = check_database(path)
    assert health is not None
    assert (health.version, health.foreign_tables) == (SCHEMA_VERSION, ())
    with read_database(path) as reader:
        assert reader.inconsistencies(THREAD) == []


async def test_a_queued_message_of_an_old_database_is_sent(tmp_path: Path) -> None:
    stage = Stage(_unpack("queued", tmp_path / "agent.db"), ScriptedModel())
    async with stage.open_session() as session:
        await finish_questions(session, await session.start())
        queued = [words for _, words in await session.queued()]
        await session.send_queued()

    assert queued == ["and then this"]
    assert stage.model.sent()[-1] == ("human", "and then this")


async def test_the_shells_of_an_old_database_are_known(tmp_path: Path) -> None:
    path = _unpack("shells", tmp_path / "agent.db")
    await (await Database.open(path)).close()
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT id, command, ending FROM background_shells ORDER BY id").fetchall()

    assert [(number, command, ending and json.loads(ending)) for number, command, ending in rows] == [
        (1, "yes", {"reason": "output_limit", "code": None, "error": "too much"}),
        (2, "sleep 1000", None),
    ]


async def test_a_sub_agent_that_waits_in_an_old_database_is_asked_for_and_finishes(tmp_path: Path) -> None:
    _unpack("sub_agent", tmp_path / "db")
    family = Family(tmp_path, TaskModel({"ALPHA": [text("alpha is done")], "go": [text("all done")]}))
    with closing(sqlite3.connect(family.database)) as database, database:
        database.execute("UPDATE threads SET workspace = ?", (str(family.workspace),))

    async with family.open_session(PARENT) as session:
        opened = await session.start()
        rest = await finish_questions(session, opened)

    assert [item.sub_agent for item in opened.questions] == ["first"]
    assert (rest.answer, family.model.sent("go")[-1]) == ("all done", ("tool", "alpha is done"))


@pytest.mark.parametrize("name", ["finished", "asking", "rewound"])
async def test_an_old_export_is_imported_and_resumed(name: str, tmp_path: Path) -> None:
    file = tmp_path / "thread.json"
    file.write_bytes(lzma.decompress((_FILES / f"{name}.json.xz").read_bytes()))
    stage = Stage(tmp_path / "data" / "agent.db", ScriptedModel())
    await import_thread(stage.database, str(file))
    imported = _statuses(stage.database)
    async with stage.open_session() as session:
        await finish_questions(session, await session.start())

    case = _CASES[name]
    assert imported == case.calls
    assert tuple(call_id for call_id, _ in stage.toolbox.ran) == case.ran
    with read_database(stage.database) as reader:
        assert reader.inconsistencies(THREAD) == []
