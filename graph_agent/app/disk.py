"""Whether what the agent keeps on the disk is sound, agrees with itself, is private, and has room. Looks only."""

import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from graph_agent.app.check import Check
from graph_agent.app.mounts import mount_of
from graph_agent.config.paths import blob_dir, data_dir, lock_dir
from graph_agent.errors import AgentError, DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.inspect import Reader
from graph_agent.store.health import Health, database_health
from graph_agent.store.migrations import SCHEMA_VERSION
from graph_agent.store.privacy import exposed_files, strangers_files

__all__ = ["examine_disk", "own_folders"]

_LEAST_FREE_BYTES = 100 * 1024 * 1024
_MUCH_LOG_BYTES = 64 * 1024 * 1024
_LOOK_S = 5.0
"""How long threads are held against their checkpoints; the last at work first."""
_REPAIR = "graph-agent doctor --repair"
_BACKUP = "a copy made by `doctor --backup FILE` can be put in its place, once -wal and -shm beside it are gone"


def own_folders(database: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders that the agent made for itself; of a database elsewhere, the folder is somebody else's."""
    try:
        home = data_dir(environment)
    except RuntimeError:
        return []
    return [home, home / "logs"] if home == database.parent else [home / "logs"]


def examine_disk(path: Path, environment: Mapping[str, str]) -> list[Check]:
    """Every check of the disk, in the order in which they are shown."""
    told, database = _database(path)
    rest: tuple[Callable[[], Check], ...] = (
        lambda: _projections(path, told),
        lambda: _shells(path, told),
        lambda: _size(path),
        lambda: _privacy(path, own_folders(path, environment)),
        lambda: _space(path),
        lambda: _file_system(path),
    )
    return [database, _schema(told), *(check() for check in rest)]


def _database(path: Path) -> tuple[Health | None, Check]:
    try:
        told = database_health(path)
        if told is not None:
            Reader.open(path).close()  # It sees pages that are missing at the end.
            _require_writable(path)
    except NewerSchema as error:
        return None, Check("database", ok=False, detail=str(error), hint="update graph-agent")
    except DamagedDatabase as error:
        if not path.exists():
            return None, Check("database", ok=False, detail=str(error), hint=_BACKUP)
        hint = f"{_REPAIR} takes what can be read over into a new file and keeps this one; or {_BACKUP}"
        return None, Check("database", ok=False, detail=str(error), hint=hint)
    except NothingYet:
        told = None
    except (StorageError, OSError) as error:
        hint = "check owner and permissions of the file and of its folder, or name another with --db"
        return None, Check("database", ok=False, detail=str(error), hint=hint)
    if told is None:
        return None, _absent(path)
    return told, Check("database", ok=True, detail=f"{path}: sound, {told.threads} threads")


def _require_writable(path: Path) -> None:
    for folder in (blob_dir(path), lock_dir(path)):
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is no folder, and one of the agent's own is kept there: move it away")
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise StorageError(f"{place} cannot be written: threads can be looked at, but not gone on with")


def _absent(path: Path) -> Check:
    place = _existing(path.parent)
    if not os.access(place, os.W_OK | os.X_OK):
        hint = "name a folder that you may write: --db FILE, GRAPH_AGENT_DB or GRAPH_AGENT_HOME"
        return Check("database", ok=False, detail=f"{path} cannot be made: {place} cannot be written", hint=hint)
    return Check("database", ok=True, detail=f"{path} does not exist yet; the first chat makes it")


def _schema(told: Health | None) -> Check:
    if told is None:
        return Check("schema", ok=True, detail=f"this program writes version {SCHEMA_VERSION}")
    detail = f"version {told.version} of {SCHEMA_VERSION}"
    if not told.has_word_index:
        detail += "; this SQLite has no FTS5, so `threads search` scans every message"
    if told.foreign_tables:
        detail += f"; tables of another program: {', '.join(told.foreign_tables)}"
        return Check("schema", ok=False, detail=detail, hint="they are left alone and take room", matters=False)
    if told.version < SCHEMA_VERSION:
        return Check(
            "schema", ok=True, detail=detail, hint="the next command that writes copies it, then migrates it"
        )
    return Check("schema", ok=True, detail=detail)


def _projections(path: Path, told: Health | None) -> Check:
    if told is None:
        return Check("projections", ok=True, detail="nothing to compare")
    try:
        return _compared(path)
    except AgentError as error:
        return Check("projections", ok=False, detail=str(error), hint=_REPAIR)


def _compared(path: Path) -> Check:
    until, seen, wrong = time.monotonic() + _LOOK_S, 0, []
    with Reader.open(path) as reader:
        threads = reader.stored_threads()
        for thread_id in threads:
            if time.monotonic() > until:
                break
            seen += 1
            wrong += [f"{thread_id}: {phrase}" for phrase in reader.disagreements(thread_id)[:1]]
    if wrong:
        return Check("projections", ok=False, detail=_listed(wrong, "; "), hint=f"{_REPAIR} derives them anew")
    compared = f"{seen} threads" if seen == len(threads) else f"{seen} of {len(threads)} threads"
    return Check("projections", ok=True, detail=f"list, transcript and ledger of {compared} say what was stored")


def _shells(path: Path, told: Health | None) -> Check:
    if told is None:
        return Check("shells", ok=True, detail="nothing is known of any")
    try:
        with Reader.open(path) as reader:
            running = reader.shells()
            lost = {one.thread_id for one in running if reader.thread(one.thread_id).holder is None}
    except AgentError as error:
        return Check("shells", ok=False, detail=str(error), hint=_REPAIR, matters=False)
    if not running:
        return Check("shells", ok=True, detail="none runs in the background")
    named = _listed((f"{one.shell_id} (pid {one.pid}, thread {one.thread_id})" for one in running), ", ")
    hint = f"graph-agent resume {shlex.quote(min(lost))} takes up what its thread left running" if lost else ""
    return Check("shells", ok=not lost, detail=f"in the background: {named}", hint=hint, matters=False)


def _size(path: Path) -> Check:
    log = _bytes(path.with_name(f"{path.name}-wal"))
    parts = [f"database {_megabytes(_bytes(path))}", f"log {_megabytes(log)}"]
    for kind, folder in (("blobs", "objects"), ("spools", "spool")):
        files = [Path(where) / name for where, _, names in os.walk(blob_dir(path) / folder) for name in names]
        parts.append(f"{len(files)} {kind} {_megabytes(sum(map(_bytes, files)))}")
    if log > _MUCH_LOG_BYTES:
        hint = f"{_REPAIR} writes the log into the database, once nobody reads it"
        return Check("size", ok=False, detail=", ".join(parts), hint=hint, matters=False)
    return Check("size", ok=True, detail=", ".join(parts))


def _privacy(path: Path, folders: list[Path]) -> Check:
    exposed, others = exposed_files(path, folders), strangers_files(path, folders)
    if others:
        detail = f"another user owns {_listed([shlex.quote(str(one)) for one in others], ' ')}"
        return Check("privacy", ok=False, detail=detail, hint="give them to you with chown", matters=False)
    if not exposed:
        return Check("privacy", ok=True, detail="nobody else can read what the agent keeps")
    named = [shlex.quote(str(found)) for found in exposed]
    hint = f"chmod go= {' '.join(named)}" if len(named) <= 3 else _REPAIR
    return Check("privacy", ok=False, detail=f"others can read {_listed(named, ' ')}", hint=hint, matters=False)


def _space(path: Path) -> Check:
    place = _existing(path.parent)
    free = shutil.disk_usage(place).free
    detail = f"{free // (1024 * 1024)} MB free at {place}"
    return Check("space", free >= _LEAST_FREE_BYTES, detail, "" if free >= _LEAST_FREE_BYTES else "make room")


def _file_system(path: Path) -> Check:
    mount = mount_of(_existing(path.parent))
    if mount is None:
        return Check("filesystem", ok=True, detail="not known")
    if mount.is_network:
        hint = "name a local file with --db or GRAPH_AGENT_DB: locks and the log are not safe between machines"
        detail = f"{mount.kind}, a network file system, at {mount.place}"
        return Check("filesystem", ok=False, detail=detail, hint=hint, matters=False)
    return Check("filesystem", ok=True, detail=f"{mount.kind} at {mount.place}")


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), Path("/"))


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _listed(found: Iterable[str], between: str) -> str:
    named = list(found)
    more = f"{between}and {len(named) - 3} more" if len(named) > 3 else ""
    return between.join(named[:3]) + more
