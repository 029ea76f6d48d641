"""Every column and row of a database, damaged in every way: said clearly, then repaired or named."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.doctor import check_disk
from graph_agent.app.reader import read_database
from graph_agent.app.repair import repair
from graph_agent.errors import AgentError, InternalError
from graph_agent.inspect import Reader
from tests.cases.bench import Bench
from tests.cases.damage import HURT, READERS, REPLIES, WELL, WRITERS, Damage, damages, furnish, hurt
from tests.fakes.openai_server import TXT, FakeOpenAI

_READS: tuple[Callable[[Reader], Any], ...] = (
    lambda reader: reader.family(HURT),
    lambda reader: reader.history(HURT),
    lambda reader: reader.inspection(HURT),
    lambda reader: reader.visits(HURT, reader.thread(HURT).checkpoint_id or ""),
    lambda reader: reader.calls(),
    lambda reader: (reader.approvals(), reader.interrupted(), reader.statistics()),
    lambda reader: [reader.attempts(view.thread_id, view.record["call_id"]) for view in reader.calls(HURT)],
    lambda reader: reader.done(HURT),
    lambda reader: list(reader.search("done")),
    lambda reader: (reader.transcript(HURT, all_branches=True), reader.recent(HURT, 5)),
    lambda reader: list(reader.export(HURT, lambda _: b"{}")),
    lambda reader: (reader.grants(), reader.shells(), reader.roots(HURT), reader.workspaces()),
)
_TABLES = ("checkpoints", "writes")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database with a thread that ended and one that asks, sound."""
    folder = tmp_path_factory.mktemp("whole")
    with FakeOpenAI(REPLIES, strict=True) as server:
        yield furnish(Bench(folder, server, {}))


def test_no_damage_of_checkpoints_is_silent_or_raw_and_repair_keeps_every_call(whole: Path, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    count = 0
    for damage in damages(whole):
        target = tmp_path / str(count) / "data" / whole.name
        if damage.table in _TABLES and hurt(whole, damage, target):
            count += 1
            if found := _met(target, damage):
                wrong[str(damage)] = found
            shutil.rmtree(target.parent.parent)

    assert count > 80
    assert wrong == {}, "\n".join(f"{name}: {found}" for name, found in wrong.items())


_SHORT = ("bytes", "map", "every_second_missing", "all_rows_missing")


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.sweep)])
def test_no_damage_of_other_tables_is_raw_or_hides_a_thread_and_repair_keeps_every_call(
    whole: Path, tmp_path: Path, is_long: bool
) -> None:
    wrong: dict[str, list[str]] = {}
    count = 0
    for damage in damages(whole):
        target = tmp_path / str(count) / "data" / whole.name
        is_chosen = str(damage).endswith(_SHORT) != is_long
        if damage.table not in _TABLES and is_chosen and hurt(whole, damage, target):
            count += 1
            is_plain = not str(damage).endswith("bytes")
            found = [one for one in _met(target, damage) if not (is_plain and one == _SILENT)]
            if found:
                wrong[str(damage)] = found
            shutil.rmtree(target.parent.parent)

    assert count > 90
    assert wrong == {}, "\n".join(f"{name}: {found}" for name, found in wrong.items())


_SILENT = "doctor finds nothing"


def _met(path: Path, damage: Damage) -> list[str]:
    """What is wrong about how a damaged database is met."""
    before = _logged(path)
    wrong = [f"{number}: {raw}" for number, read in enumerate(_READS) if (raw := _raw(path, read))]
    with read_database(path) as reader:
        is_listed = damage.table != "threads" or "missing" not in damage.what
        if is_listed and {thread.thread_id for thread in reader.threads()} != {HURT, WELL}:
            wrong.append("a thread is missing in the list")
    if not _failed(path):
        wrong.append(_SILENT)
    asyncio.run(_repaired(path))
    if left := _failed(path):
        wrong.append(f"left by repair: {left}")
    wrong += [f"repair lost call {call_id}" for call_id in before - _logged(path)]
    return wrong


def _raw(path: Path, read: Callable[[Reader], Any]) -> str:
    """The error that no person should see; empty where there is none."""
    with read_database(path) as reader:
        try:
            read(reader)
        except InternalError as error:
            return repr(error)
        except AgentError as error:
            return "" if "graph-agent doctor" in str(error) or HURT in str(error) else f"no remedy: {error}"
        except Exception as error:  # noqa: BLE001 - what is raw is what is tested for
            return repr(error)
    return ""


def _failed(path: Path) -> list[str]:
    checks = check_disk(path, {"GRAPH_AGENT_HOME": str(path.parent.parent)})
    return [check.detail for check in checks if not check.ok and check.name != "privacy"]


async def _repaired(path: Path) -> None:
    async for _ in repair(path, {"GRAPH_AGENT_HOME": str(path.parent.parent)}):
        pass


def _logged(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        calls = database.execute("SELECT call_id FROM call_log WHERE thread_id = ?", (HURT,)).fetchall()
    return {call_id for (call_id,) in calls} & {"hurt1", "hurt2", "ask1", "ask2"}


_SAMPLE = (
    "checkpoints-checkpoint_bytes",
    "checkpoints-metadata_map",
    "checkpoints-type_number",
    "checkpoints-first_missing",
    "checkpoints-all_but_newest_missing",
    "writes-all_rows_missing",
    "writes-every_second_missing",
)


def _by_name(path: Path, name: str) -> Damage:
    return next(damage for damage in damages(path) if str(damage) == name)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.sweep] * (number > 1)) for number, name in enumerate(_SAMPLE)]
)
def test_every_command_says_which_checkpoint_is_damaged_and_after_repair_the_questions_are_asked_again(
    whole: Path, tmp_path: Path, name: str
) -> None:
    with FakeOpenAI([TXT("fine")] * 50) as server:
        bench = Bench(tmp_path, server, {})
        target = bench.home / "data" / whole.name
        assert hurt(whole, _by_name(whole, name), target)
        ended = {words[:2]: bench.command(*words) for words in (*READERS, *WRITERS)}
        raw = [words for words, ended in ended.items() if "Unexpected" in ended.stderr]
        run = ended["run", "--resume"]
        unasked = list(server.bodies)
        asyncio.run(_repaired(target))
        resumed = bench.ask("--resume", HURT, "--approve", "all")
        calls = bench.command.json("calls", HURT)["calls"]

    parts = ("Checkpoint ", f"thread {HURT}", str(target), "intact", "doctor --repair")
    assert (raw, run.returncode, [part in run.stderr for part in parts], unasked) == ([], 1, [True] * 5, [])
    assert (resumed.ending, [call["status"] for call in calls]) == ((0, "fine"), ["success"] * 4)
