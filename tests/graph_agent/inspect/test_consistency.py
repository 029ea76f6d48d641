import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.threads import fork
from graph_agent.errors import DamagedDatabase
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage, checkpoints, to_the_end, two_turns


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished thread, with branches begun in several places."""
    stage = Stage(tmp_path_factory.mktemp("played") / "a.db", ScriptedModel())

    async def play() -> None:
        await two_turns(stage)
        for place in checkpoints(stage)[3::9]:
            stage.model = ScriptedModel()
            async with stage.open_session(checkpoint=place) as session:
                await to_the_end(session, await session.start())

    asyncio.run(play())
    return stage.database.parent


@pytest.fixture
def stage(played: Path, tmp_path: Path) -> Stage:
    shutil.copytree(played, tmp_path, dirs_exist_ok=True)
    return Stage(tmp_path / "a.db", ScriptedModel())


def _found(stage: Stage) -> list[str]:
    with read_database(stage.database) as reader:
        return [
            phrase for thread_id in reader.checkpointed_threads() for phrase in reader.inconsistencies(thread_id)
        ]


def _harm(stage: Stage, *statements: str) -> None:
    with closing(sqlite3.connect(stage.database, isolation_level=None)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0


@pytest.mark.slow
async def test_a_thread_is_consistent_wherever_it_is_resumed_or_forked(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel())
    await two_turns(stage)
    places = checkpoints(stage)
    for place in places:
        await fork(stage.database, place)
    found = [_found(stage)]
    for place in places:
        stage.model = ScriptedModel()
        async with stage.open_session(checkpoint=place) as session:
            rest = await session.start()
            found.append(_found(stage))
            await to_the_end(session, rest)
        found.append(_found(stage))

    assert [phrases for phrases in found if phrases] == []
    assert len(found) > 20


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM threads", "missing in the list"),
        ("UPDATE threads SET checkpoint_id = NULL", "its head is none"),
        ("UPDATE threads SET checkpoint_id = (SELECT min(checkpoint_id) FROM checkpoints)", "its head is"),
        ("UPDATE threads SET next_nodes = '[\"reasoning\"]'", "different next nodes"),
        ("UPDATE threads SET outcome = 'limit'", "a different outcome"),
        ("UPDATE threads SET turns = 77", "a different number of turns"),
        ("DELETE FROM transcript WHERE role = 'assistant'", "messages are missing in the transcript"),
        (
            "UPDATE transcript SET body = '{\"content\": \"forged\"}' WHERE role = 'user'",
            "differs from the transcript",
        ),
        ("DELETE FROM call_log", "calls are missing in the call log"),
        ("UPDATE call_log SET status = 'executing'", "in the call log, and nothing waits for it"),
        ("DELETE FROM branches", "transcript"),
    ],
)
async def test_a_difference_is_named_and_rebuilding_repairs_it(stage: Stage, harm: str, said: str) -> None:
    _harm(stage, harm)

    before = _found(stage)
    async with await Database.open(stage.database) as database:
        await CheckpointSaver(database).rebuild_projections(THREAD)

    assert any(said in phrase for phrase in before), before
    assert _found(stage) == []


@pytest.mark.parametrize(("channel", "value"), [("messages", "X'07'"), ("calls", "X'81a16307'")])
async def test_a_value_that_decodes_to_another_than_was_stored_is_named_as_damage(
    stage: Stage, channel: str, value: str
) -> None:
    _harm(stage, f"UPDATE writes SET value = {value} WHERE channel = '{channel}'")  # noqa: S608 - from here

    assert f"a write to '{channel}' at it holds" in _found(stage)[0] or "missing or changed" in _found(stage)[0]


async def test_a_record_that_is_none_is_named_as_damage_and_nothing_else_is_told(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    _harm(stage, "UPDATE call_log SET record = '{\"stat\": 1}'")

    with (
        pytest.raises(DamagedDatabase, match="instead of a call"),
        read_database(stage.database) as reader,
    ):
        reader.calls()

    assert capfd.readouterr().err == ""


async def test_a_pruned_thread_agrees_and_rebuilding_keeps_what_its_checkpoints_tell_no_more(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel())
    for number in range(6):
        stage.model = ScriptedModel(calls((f"c{number}", "read_a")), text(f"answer {number}"))
        async with stage.open_session() as session:
            await session.send(f"turn {number}")
    tables = ("transcript", "branches", "call_log", "threads")

    def content() -> list[list[tuple[object, ...]]]:
        with closing(sqlite3.connect(stage.database)) as database:
            return [database.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in tables]  # noqa: S608 - names from here

    async with await Database.open(stage.database) as database:
        saver = CheckpointSaver(database)
        await saver.prune_thread(THREAD, 2)
        whole = content()
        agreed = _found(stage)
        _harm(stage, "DELETE FROM transcript WHERE seq > 20", "UPDATE threads SET turns = 0, checkpoint_id = NULL")
        harmed = _found(stage)
        await saver.rebuild_projections(THREAD)

    assert (agreed, bool(harmed), _found(stage)) == ([], True, [])
    assert content() == whole
