"""Every column and row of a database, damaged in every way: said clearly, then repaired or named."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
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


_EVERY = 8
"""The quick form takes one damage in eight, so that each column and kind comes up; the sweep takes the others."""


_LONG = (pytest.mark.sweep, pytest.mark.timeout(3600))


def _chosen(whole: Path, *, is_long: bool) -> Iterator[Damage]:
    for number, damage in enumerate(damages(whole)):
        if (number % _EVERY == 0) != is_long:
            yield damage


def _wrong(
    whole: Path,
    folder: Path,
    fits: Callable[[Damage], bool],
    allowed: Callable[[Damage, str], bool],
    *,
    is_long: bool,
) -> tuple[int, dict[str, list[str]]]:
    """How often the file was damaged as `fits` says, and by damage what was found that is not allowed."""
    count, wrong = 0, {}
    for damage in _chosen(whole, is_long=is_long):
        target = folder / str(count) / "data" / whole.name
        if fits(damage) and hurt(whole, damage, target):
            count += 1
            found = [one for one in _met(target, damage) if not allowed(damage, one)]
            if found:
                wrong[str(damage)] = found
            shutil.rmtree(target.parent.parent)
    return count, wrong


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=_LONG)])
def test_no_damage_of_checkpoints_is_silent_or_raw_and_repair_keeps_every_call(
    whole: Path, tmp_path: Path, is_long: bool
) -> None:
    count, wrong = _wrong(
        whole, tmp_path, lambda damage: damage.table in _TABLES, lambda _damage, _found: False, is_long=is_long
    )

    assert count > 8
    assert wrong == {}, "\n".join(f"{name}: {found}" for name, found in wrong.items())


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=_LONG)])
def test_no_damage_of_other_tables_is_raw_or_hides_a_thread_and_repair_keeps_every_call(
    whole: Path, tmp_path: Path, is_long: bool
) -> None:
    def is_plain(damage: Damage, found: str) -> bool:
        return found == _SILENT and not str(damage).endswith("bytes")

    count, wrong = _wrong(whole, tmp_path, lambda damage: damage.table not in _TABLES, is_plain, is_long=is_long)

    assert count > 50
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


def _truncated(share: float, less: int = 0) -> Callable[[Path], object]:
    return lambda path: os.truncate(path, int(path.stat().st_size * share) - less)


def _without(*ends: str) -> Callable[[Path], object]:
    def remove(path: Path) -> None:
        for end in ends:
            shutil.rmtree(path.with_name(f"{path.name}.{end}"))

    return remove


def _log(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: change(path.with_name(f"{path.name}-wal"))


def _overwritten(start: int, content: bytes) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(start)
            file.write(content)

    return write


def _header(field: int, value: int) -> Callable[[Path], object]:
    return _overwritten(field, value.to_bytes(4, "big", signed=True))


_EMPTY = _truncated(0)
_VERSION, _MARK = 60, 68
"""Where the header of the file holds its schema version and the mark of the program."""
_FILES: dict[str, tuple[Sequence[Callable[[Path], object]], bool, set[str]]] = {
    # What is done to the file, whether a log is beside it, and the threads that the repaired one has.
    "cut by a byte": ([_truncated(1, 1)], False, {HURT, WELL}),
    "cut by less than a page": ([_truncated(1, 4095)], False, {HURT, WELL}),
    "cut by a page": ([_truncated(1, 4096)], False, {HURT, WELL}),
    "cut to half": ([_truncated(0.5)], False, {HURT, WELL}),
    "cut to half, with a log": ([_truncated(0.5)], True, {HURT, WELL, "late"}),
    "cut to its header": ([lambda path: os.truncate(path, 100)], False, set()),
    "without its first page": ([_overwritten(0, bytes(4096))], False, {HURT, WELL}),
    "without its list of tables": ([_overwritten(100, bytes(3996))], False, {HURT, WELL}),
    "empty": ([_EMPTY], False, set()),
    "empty, with blobs only": ([_EMPTY, _without("locks")], False, set()),
    "empty, with a log only": ([_EMPTY, _without("locks", "blobs")], True, {HURT, WELL, "late"}),
    "schema version 0": ([_header(_VERSION, 0)], False, {HURT, WELL}),
    "schema version 3": ([_header(_VERSION, 3)], False, {HURT, WELL}),
    "schema version -1": ([_header(_VERSION, -1)], False, {HURT, WELL}),
    "no mark of the program": ([_header(_MARK, 0)], False, {HURT, WELL}),
    "log lost": ([_log(Path.unlink)], True, {HURT, WELL}),
    "log cut to its beginning": ([_log(_truncated(0.01))], True, {HURT, WELL}),
    "log overwritten": ([_log(_overwritten(32, bytes(4000)))], True, {HURT, WELL}),
}


@pytest.fixture(scope="module")
def logged(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same database, with a thread that is in the log beside it only."""
    folder = tmp_path_factory.mktemp("logged")
    shutil.copytree(whole.parent.parent.parent, folder / "one", dirs_exist_ok=True)
    path = folder / "one" / "home" / "data" / whole.name
    with FakeOpenAI([TXT("fine")] * 2) as server, closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT 1 FROM threads").fetchone()
        bench = Bench(folder / "one", server, {})
        assert [bench.run("late", *thread).code for thread in (("--thread", "late"), ("--resume", WELL))] == [0, 0]
        shutil.copytree(path.parent, folder / "data", ignore=shutil.ignore_patterns("*-shm"))
    return folder / "data" / whole.name


_OFTEN = ("cut by a byte", "cut to half", "without its first page", "empty", "schema version 0", "log lost")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.sweep] * (name not in _OFTEN)) for name in _FILES]
)
def test_a_damaged_file_is_never_taken_for_a_new_or_sound_one_and_what_is_readable_is_kept(
    whole: Path, logged: Path, tmp_path: Path, name: str
) -> None:
    changes, has_log, kept = _FILES[name]
    source = logged if has_log else whole
    path = tmp_path / "home" / "data" / whole.name
    shutil.copytree(source.parent, path.parent)
    for change in changes:
        change(path)
    before = path.read_bytes()
    failed = _failed(path)
    with FakeOpenAI([TXT("fine")]) as server:
        bench = Bench(tmp_path, server, {})
        listed = bench.command("threads", "list")
        remedy = "doctor --repair" if before or has_log else "restore a backup"
        is_said = remedy in listed.stderr or (name.startswith("log") and listed.returncode == 0)
    assert (bool(failed), is_said, "Traceback" in listed.stderr, path.read_bytes() == before) == (
        True,
        True,
        False,
        True,
    )
    asyncio.run(_repaired(path))
    if not kept:
        assert (_failed(path) != [], path.read_bytes()) == (True, before)
        return
    with read_database(path) as reader:
        assert {thread.thread_id for thread in reader.threads()} == kept
        has_calls = [thread_id for thread_id in (HURT, WELL) if reader.calls(thread_id)]
    assert has_calls == [HURT, WELL] or name.startswith("empty")
    assert _failed(path) == []


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

    shown = [words[1] for words in (("threads", "show"), ("threads", "search")) if ended[words].returncode == 1]
    parts = ("Checkpoint ", f"thread {HURT}", str(target), "intact", "doctor --repair")
    assert shown == ["show", "search"] or name != _SAMPLE[0]
    assert (raw, run.returncode, [part in run.stderr for part in parts], unasked) == ([], 1, [True] * 5, [])
    # The turn that was interrupted, and the message that a command queued meanwhile.
    assert (resumed.ending, [call["status"] for call in calls]) == ((0, "fine\nfine"), ["success"] * 5)
