"""Fix what `doctor` finds and can fix; a damaged file is kept beside its repaired copy."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from graph_agent.app.doctor import RepairMessage, own_folders
from graph_agent.app.reader import read_database
from graph_agent.config.paths import blob_dir
from graph_agent.config.sources import load_settings
from graph_agent.errors import AgentError, ConfigError, DamagedDatabase, ThreadHeld
from graph_agent.graph.run_context import new_owner_token
from graph_agent.ports import SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.private_files import exposed_files, restrict_permissions
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database, release_free_pages
from graph_agent.storage.sqlite.health import back_up, check_database, require_own_database
from graph_agent.storage.sqlite.integrity import count_unreadable_values, drop_incomplete_checkpoints
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.pruning import collect_garbage, find_garbage, should_prune
from graph_agent.storage.sqlite.repair import SalvageResult, salvage
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock

__all__ = ["repair"]

_ALL_TURNS = 2**32

Step = Callable[[], AsyncIterator[RepairMessage]]


async def repair(path: Path, environment: Mapping[str, str]) -> AsyncIterator[RepairMessage]:
    """Mend, and say it step by step. Where a step fails the next ones are tried all the same."""
    try:
        require_own_database(path)
    except (AgentError, OSError) as error:
        yield RepairMessage("database", "left", str(error))
        return
    folders = own_folders(path, environment)
    keep_turns = _keep_turns(environment)
    steps: dict[str, Step] = {
        "privacy": lambda: _close_to_others(path, folders),
        "database": lambda: _make_sound(path),
        "log": lambda: _write_log_back(path),
        "schema": lambda: _migrate(path),
        "values": lambda: _drop_unreadable(path),
        "projections": lambda: _rebuild(path),
        "pruning": lambda: _prune(path, keep_turns),
        "blobs": lambda: _collect(path),
    }
    for name, step in steps.items():
        if name not in ("privacy", "database") and not _stands(path):
            return
        try:
            async for said in step():
                yield said
        except (AgentError, OSError) as error:
            yield RepairMessage(name, "left", str(error))
            if name in ("database", "schema"):
                return


async def _close_to_others(path: Path, folders: list[Path]) -> AsyncIterator[RepairMessage]:
    exposed = exposed_files(path, folders)
    if not exposed:
        return
    yield RepairMessage(
        "privacy", "will", f"take the rights of others off {len(exposed)} files and folders of the agent"
    )
    left = restrict_permissions(exposed)
    yield RepairMessage("privacy", "done", f"{len(exposed) - len(left)} are yours alone now")
    if left:
        yield RepairMessage(
            "privacy", "left", f"not possible for {', '.join(map(str, left[:3]))}: they are another user's"
        )


async def _make_sound(path: Path) -> AsyncIterator[RepairMessage]:
    found = _damage(path)
    if found is None:
        return
    yield RepairMessage(
        "database", "will", f"{found}; take what can be read over into a new file, and keep this one"
    )
    done = salvage(path)
    yield RepairMessage(
        "database", "done", f"{done.rows} rows stand in {path}; the damaged file is {done.original}"
    )
    if done.lost:
        yield RepairMessage("database", "left", f"could not be read: {_listed_losses(done)}")
    async for said in _stand_on_what_is_whole(path):
        yield said


def _listed_losses(done: SalvageResult) -> str:
    return ", ".join(
        f"{'an unknown number of' if rows is None else rows} rows of {table}" for table, rows in done.lost.items()
    )


async def _stand_on_what_is_whole(path: Path) -> AsyncIterator[RepairMessage]:
    async with await Database.open(path) as database:
        dropped = await database.write(drop_incomplete_checkpoints)
        for thread_id, count in dropped.items():
            await _derive(database, thread_id)
            yield RepairMessage("database", "left", _format_lost(thread_id, count))


def _format_lost(thread_id: str, count: int) -> str:
    gone = f"thread {thread_id}: {count} checkpoints rested on what is lost"
    return f"{gone}; it goes on from the newest one that is whole"


async def _drop_unreadable(path: Path) -> AsyncIterator[RepairMessage]:
    """Treat a value that cannot be decoded like one that is lost: SQLite finds nothing wrong with the file."""
    async with await Database.open(path) as database:
        found = await database.run(count_unreadable_values)
        if not found:
            return
        kept = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        counted = ", ".join(f"{count} of thread {thread_id}" for thread_id, count in found.items())
        yield RepairMessage(
            "values", "will", f"keep a copy of the database, and drop what cannot be read: {counted} values"
        )
        await database.run(lambda _: back_up(path, kept))
        yield RepairMessage("values", "done", f"the database as it was is {kept}")
        for thread_id in found:
            dropped: dict[str, int] = {}
            held = await _while_held(database, thread_id, partial(_drop_of, database, thread_id, dropped))
            for name, count in dropped.items():
                yield RepairMessage("values", "left", _format_lost(name, count))
            if held:
                yield RepairMessage("values", "left", held)


async def _drop_of(database: Database, thread_id: str, dropped: dict[str, int]) -> None:
    dropped.update(await database.write(lambda one: drop_incomplete_checkpoints(one, thread_id)))
    await _derive(database, thread_id)


async def _migrate(path: Path) -> AsyncIterator[RepairMessage]:
    described = check_database(path)
    if described is None or described.version == SCHEMA_VERSION:
        return
    yield RepairMessage(
        "schema", "will", f"copy the database, then bring schema {described.version} up to {SCHEMA_VERSION}"
    )
    await (await Database.open(path)).close()
    copy = _newest(path, f"v{described.version}-*.backup")
    yield RepairMessage("schema", "done", f"schema {SCHEMA_VERSION}; the copy of before is {copy}")


async def _rebuild(path: Path) -> AsyncIterator[RepairMessage]:
    with read_database(path) as reader:
        wrong = {
            thread_id: found
            for thread_id in reader.checkpointed_threads()
            if (found := reader.inconsistencies(thread_id))
        }
    for thread_id, found in wrong.items():
        yield RepairMessage(
            "projections", "will", f"derive list, transcript and ledger of thread {thread_id} anew: {found[0]}"
        )
        async with await Database.open(path) as database:
            held = await _while_held(database, thread_id, partial(_derive, database, thread_id))
        with read_database(path) as reader:
            left = [held] if held else reader.inconsistencies(thread_id)
        text = f"thread {thread_id}: {left[0] if left else 'they say what its checkpoints say'}"
        yield RepairMessage("projections", "left" if left else "done", text)


async def _derive(database: Database, thread_id: str) -> None:
    await CheckpointSaver(database).rebuild_projections(thread_id)


async def _prune(path: Path, keep_turns: int) -> AsyncIterator[RepairMessage]:
    async with await Database.open(path) as database:
        saver = CheckpointSaver(database)
        with read_database(path) as reader:
            idle = [thread.thread_id for thread in reader.threads() if thread.status == "idle"]
        grown = await database.run(lambda one: [its for its in idle if should_prune(one, its, keep_turns)])
        for thread_id in grown:
            yield RepairMessage(
                "pruning", "will", f"prune thread {thread_id} to its last {keep_turns} turns, as it is idle"
            )
            held = await _while_held(database, thread_id, partial(saver.prune_if_grown, thread_id, keep_turns))
            yield RepairMessage("pruning", "left" if held else "done", held or f"thread {thread_id} is cut")


async def _while_held(database: Database, thread_id: str, work: Callable[[], Awaitable[object]]) -> str:
    """Do it with the thread's lock; why not, where another process has it."""
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


async def _collect(path: Path) -> AsyncIterator[RepairMessage]:
    blobs = FileBlobs(blob_dir(path))
    if not _stands(blobs.folder):
        return
    async with await Database.open(path) as database:
        orphans = await database.run(lambda one: find_garbage(one, blobs))
        if not orphans:
            return
        if kept := _newest(path, "damaged-*"):
            text = f"{len(orphans)} files are named by nothing here, but maybe in {kept}: remove that one first"
            yield RepairMessage("blobs", "left", text)
            return
        yield RepairMessage(
            "blobs", "will", f"remove {len(orphans)} stored contents and outputs that nothing names any more"
        )
        gone = await database.run(lambda one: collect_garbage(one, blobs))
        yield RepairMessage("blobs", "done", f"{gone.files} files removed, {gone.bytes} bytes")


async def _write_log_back(path: Path) -> AsyncIterator[RepairMessage]:
    if not (size := _log_bytes(path)):
        return
    yield RepairMessage("log", "will", f"write the log of {size} bytes into the database")
    async with await Database.open(path) as database:
        await database.run(release_free_pages)
    left = _log_bytes(path)
    text = f"{left} bytes stay in the log while another process reads" if left else "the database is one file again"
    yield RepairMessage("log", "left" if left else "done", text)


def _damage(path: Path) -> str | None:
    try:
        check_database(path)
    except DamagedDatabase as error:
        return str(error)
    return None


def _keep_turns(environment: Mapping[str, str]) -> int:
    try:
        return load_settings(environment).keep_turns
    except ConfigError:
        # Told by the check of the settings. What cannot be read may be a wish to keep more.
        return _ALL_TURNS


def _stands(path: Path) -> bool:
    return path.exists()


def _newest(path: Path, end: str) -> Path | None:
    return max(path.parent.glob(f"{path.name}.{end}"), default=None)


def _log_bytes(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0
