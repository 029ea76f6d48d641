"""Fix what `doctor` finds and can fix; a damaged file is kept beside its repaired copy."""

import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from graph_agent.app.doctor import own_folders
from graph_agent.app.reader import read_database
from graph_agent.config.paths import blob_dir
from graph_agent.config.sources import load_settings
from graph_agent.errors import AgentError, ConfigError, DamagedDatabase, ThreadHeld
from graph_agent.graph.run_context import new_owner_token
from graph_agent.ports import SystemClock
from graph_agent.storage import refuse_server
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.private_files import exposed_files, restrict_permissions
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database, release_free_pages
from graph_agent.storage.sqlite.database_file import REMEDY, REMEDY_IF_EMPTY, connect_read_only
from graph_agent.storage.sqlite.health import (
    DamagedRow,
    back_up,
    check_database,
    clean_row,
    damaged_rows,
    require_own_database,
)
from graph_agent.storage.sqlite.integrity import drop_incomplete_checkpoints, find_damage, restore_thread
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.pruning import collect_garbage, find_garbage, should_prune
from graph_agent.storage.sqlite.repair import salvage
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock, lost_threads

__all__ = ["RepairMessage", "repair"]

_ALL_TURNS = 2**32


@dataclass(frozen=True, slots=True)
class RepairMessage:
    """What a step of the repair reports."""

    step: str
    stage: Literal["will", "done", "left"]
    """`left`: why the step could not be done."""
    text: str


Messages = AsyncIterator[RepairMessage]


async def repair(path: Path, environment: Mapping[str, str]) -> Messages:
    """Repair, and report it step by step. If a step fails the next ones are tried all the same."""
    try:
        refuse_server(path, "doctor --repair")
        require_own_database(path)
    except (AgentError, OSError) as error:
        yield RepairMessage("database", "left", str(error))
        return
    try:
        keep_turns = load_settings(environment).keep_turns
    except ConfigError:
        # Reported by the check of the settings. What cannot be read may be a wish to keep more.
        keep_turns = _ALL_TURNS
    steps: dict[str, Callable[[], Messages]] = {
        "privacy": partial(_restrict_permissions, path, own_folders(path, environment)),
        "database": partial(_salvage, path),
        "log": partial(_write_log_back, path),
        "schema": partial(_migrate, path),
        "values": partial(_drop_unreadable, path),
        "rows": partial(_clean_rows, path),
        "threads": partial(_give_up_lost, path),
        "projections": partial(_rebuild_projections, path),
        "pruning": partial(_prune, path, keep_turns),
        "blobs": partial(_collect_garbage, path),
    }
    for name, step in steps.items():
        if name not in ("privacy", "database") and not _exists(path):
            return
        try:
            async for message in step():
                yield message
        except (AgentError, OSError) as error:
            yield RepairMessage(name, "left", str(error))
            if name in ("database", "schema"):
                return


def _exists(path: Path) -> bool:
    return path.exists()


async def _restrict_permissions(path: Path, folders: list[Path]) -> Messages:
    exposed = exposed_files(path, folders)
    if not exposed:
        return
    yield RepairMessage("privacy", "will", f"make the agent's files private: {len(exposed)} of them")
    left = restrict_permissions(exposed)
    yield RepairMessage("privacy", "done", f"private now: {len(exposed) - len(left)}")
    if left:
        names = ", ".join(map(str, left[:3]))
        yield RepairMessage("privacy", "left", f"another user owns {names}; nothing was changed there")


async def _salvage(path: Path) -> Messages:
    try:
        check_database(path)
    except DamagedDatabase as damage:
        if REMEDY_IF_EMPTY in str(damage):
            raise
        what = str(damage).removesuffix(f"; {REMEDY}.")
        yield RepairMessage("database", "will", f"{what}; copy what is readable to a new file, and keep this one")
    else:
        return
    done = salvage(path)
    yield RepairMessage("database", "done", f"{path} has {done.rows} rows; the damaged file is {done.original}")
    if done.lost:
        lost = ", ".join(
            f"{'an unknown number of' if rows is None else rows} rows of {table}"
            for table, rows in done.lost.items()
        )
        yield RepairMessage("database", "left", f"not readable: {lost}")
    async with await Database.open(path) as database:
        dropped = await database.write(drop_incomplete_checkpoints)
        for thread_id, count in dropped.items():
            await CheckpointSaver(database).rebuild_projections(thread_id)
            yield RepairMessage("database", "left", _format_lost(thread_id, count))


def _format_lost(thread_id: str, count: int) -> str:
    lost = "1 incomplete checkpoint" if count == 1 else f"{count} incomplete checkpoints"
    return f"thread {thread_id} lost {lost}; it continues from the newest complete one"


async def _write_log_back(path: Path) -> Messages:
    log = path.with_name(f"{path.name}-wal")
    if not (size := _size(log)):
        return
    yield RepairMessage("log", "will", f"write the log of {size} bytes into the database")
    async with await Database.open(path) as database:
        await database.run(release_free_pages)
    left = _size(log)
    text = (
        f"another process is reading; {left} bytes remain in the log" if left else "the database is one file again"
    )
    yield RepairMessage("log", "left" if left else "done", text)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def _migrate(path: Path) -> Messages:
    health = check_database(path)
    if health is None or health.version == SCHEMA_VERSION:
        return
    yield RepairMessage(
        "schema", "will", f"copy the database, then migrate schema {health.version} to {SCHEMA_VERSION}"
    )
    await (await Database.open(path)).close()
    copy = _newest(path, f"v{health.version}-*.backup")
    yield RepairMessage("schema", "done", f"schema {SCHEMA_VERSION}; the copy is {copy}")


def _newest(path: Path, end: str) -> Path | None:
    return max(path.parent.glob(f"{path.name}.{end}"), default=None)


async def _drop_unreadable(path: Path) -> Messages:
    """Treat a value that cannot be decoded like one that is lost: SQLite finds nothing wrong with the file."""
    async with await Database.open(path) as database:
        found = Counter(one.thread_id for one in await database.run(find_damage))
        if not found:
            return
        copy = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        values = ", ".join(f"{count} of thread {thread_id}" for thread_id, count in found.items())
        yield RepairMessage("values", "will", f"copy the database, then drop damaged checkpoints: {values}")
        await database.run(lambda _: back_up(path, copy))
        yield RepairMessage("values", "done", f"the copy is {copy}")
        for thread_id in found:
            dropped: dict[str, int] = {}
            restored: list[str] = []
            work = partial(_repair_checkpoints, database, thread_id, dropped, restored)
            problem = await _with_lock(database, thread_id, work)
            if restored:
                text = f"thread {thread_id} has its conversation and calls back, from transcript and call log"
                yield RepairMessage("values", "done", text)
            for name, count in dropped.items():
                yield RepairMessage("values", "left", _format_lost(name, count))
            if problem:
                yield RepairMessage("values", "left", problem)


async def _repair_checkpoints(
    database: Database, thread_id: str, dropped: dict[str, int], restored: list[str]
) -> None:
    is_restored, count = await database.write(lambda connection: restore_thread(connection, thread_id))
    dropped.update(count)
    restored.extend([thread_id] if is_restored else [])
    if not restored:  # A restored checkpoint was built from these tables.
        await CheckpointSaver(database).rebuild_projections(thread_id)


async def _clean_rows(path: Path) -> Messages:
    async with await Database.open(path) as database:
        found = await database.run(lambda connection: list(damaged_rows(connection.execute)))
        if not found:
            return
        copy = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        yield RepairMessage("rows", "will", f"copy the database, then clean damaged rows: {len(found)}")
        await database.run(lambda _: back_up(path, copy))
        yield RepairMessage("rows", "done", f"the copy is {copy}")
        for thread_id in dict.fromkeys(row.thread_id for row in found):
            lost: list[str] = []
            rows = [row for row in found if row.thread_id == thread_id]
            problem = await _with_lock(database, thread_id, partial(_clean_thread, database, rows, lost))
            for text in [*lost, *([problem] if problem else [])]:
                yield RepairMessage("rows", "left", text)


async def _give_up_lost(path: Path) -> Messages:
    with closing(connect_read_only(path)) as database:
        lost = lost_threads(database.execute, path)
    for lock in lost:
        os.truncate(lock, 0)
    if lost:
        text = f"{len(lost)} more are missing, although nobody deleted them, and cannot be recovered"
        yield RepairMessage("threads", "left", text)


async def _clean_thread(database: Database, rows: Sequence[DamagedRow], lost: list[str]) -> None:
    now = SystemClock().now()
    lost += await database.write(lambda connection: [clean_row(connection.execute, row, now) for row in rows])
    await CheckpointSaver(database).rebuild_projections(rows[0].thread_id)


async def _rebuild_projections(path: Path) -> Messages:
    with read_database(path) as reader:
        wrong = {
            thread_id: found
            for thread_id in reader.checkpointed_threads()
            if (found := reader.inconsistencies(thread_id))
        }
    for thread_id, found in wrong.items():
        yield RepairMessage(
            "projections", "will", f"rebuild list entry, transcript and call log of thread {thread_id}: {found[0]}"
        )
        async with await Database.open(path) as database:
            saver = CheckpointSaver(database)
            problem = await _with_lock(database, thread_id, partial(saver.rebuild_projections, thread_id))
        with read_database(path) as reader:
            left = [problem] if problem else reader.inconsistencies(thread_id)
            is_empty = not problem and reader.is_without_checkpoints(thread_id)
        if is_empty:
            left = ["all its checkpoints are lost: its messages and calls can be read, but a new turn starts empty"]
        text = f"thread {thread_id}: {left[0] if left else 'its tables match its checkpoints'}"
        yield RepairMessage("projections", "left" if left else "done", text)


async def _prune(path: Path, keep_turns: int) -> Messages:
    async with await Database.open(path) as database:
        saver = CheckpointSaver(database)
        with read_database(path) as reader:
            idle = [thread.thread_id for thread in reader.threads() if thread.status == "idle"]
        grown = await database.run(lambda one: [its for its in idle if should_prune(one, its, keep_turns)])
        for thread_id in grown:
            yield RepairMessage(
                "pruning", "will", f"prune the idle thread {thread_id} to its last {keep_turns} turns"
            )
            problem = await _with_lock(database, thread_id, partial(saver.prune_if_grown, thread_id, keep_turns))
            text = problem or f"thread {thread_id} is pruned"
            yield RepairMessage("pruning", "left" if problem else "done", text)


async def _with_lock(database: Database, thread_id: str, work: Callable[[], Awaitable[object]]) -> str:
    """Do it while holding the thread's lock; if another process has it, says which."""
    lock = FlockThreadLock(database, SystemClock())
    try:
        await lock.acquire(thread_id, new_owner_token())
    except ThreadHeld as held:
        return str(held)
    try:
        await work()
    finally:
        await lock.release()
    return ""


async def _collect_garbage(path: Path) -> Messages:
    blobs = FileBlobs(blob_dir(path))
    if not _exists(blobs.folder):
        return
    async with await Database.open(path) as database:
        orphans = await database.run(lambda connection: find_garbage(connection, blobs))
        if not orphans:
            return
        if copy := _newest(path, "damaged-*"):
            text = f"unreferenced files that may belong to {copy}: {len(orphans)}; remove that file first"
            yield RepairMessage("blobs", "left", text)
            return
        yield RepairMessage("blobs", "will", f"remove unreferenced files: {len(orphans)}")
        gone = await database.run(lambda connection: collect_garbage(connection, blobs))
        yield RepairMessage("blobs", "done", f"files removed: {gone.files} ({gone.bytes} bytes)")
