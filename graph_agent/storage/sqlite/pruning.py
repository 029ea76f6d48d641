"""Prunes the checkpoints before a thread's last turns, and collects blobs that nothing names any more.

A snapshot of every delta channel is written into the oldest checkpoint that stays before its ancestors are
deleted. Later snapshots that can be rebuilt from writes go too, so that a thread grows with its content.
Transcript, call log, journal and decisions stay. A blob is kept while any row names it, and for an hour after
it was last stored: a writer stores the blob first and the row that names it afterwards.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.calls import merge_calls, merge_messages
from graph_agent.errors import StorageError
from graph_agent.storage import Connection
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.sqlite.checkpoint_rows import DEPENDS_ON, read_checkpoint
from graph_agent.storage.sqlite.deltas import NEWEST_SHOWN, VISIBLE, delta_history, line
from graph_agent.storage.sqlite.rewinds import release_contents

if TYPE_CHECKING:
    from graph_agent.storage.serializer import StrictSerializer

__all__ = [
    "GarbageResult",
    "PruneResult",
    "collect_garbage",
    "copy_checkpoints",
    "delete_runs",
    "find_garbage",
    "keep_latest",
    "prune_thread",
    "referenced_blobs",
    "should_prune",
]

_SLACK = 5
"""A thread is pruned automatically once it has a fifth more turns than are kept."""
_SPARE_SNAPSHOTS = 3
"""One at the prune point, the newest one, and one that can go."""
_BIG_BYTES = 32 * 1024
"""A checkpoint longer than this holds a snapshot of the conversation."""

# A turn's message enters the state with a checkpoint that depends on the turn's input, and that on the turn before.
_FIRST_KEPT = f"""
{VISIBLE} SELECT t.checkpoint_id FROM transcript t JOIN line ON t.branch = line.branch AND t.seq <= line.upto
WHERE t.thread_id = :thread_id AND t.role = 'user' ORDER BY t.seq DESC LIMIT 1 OFFSET :skipped
"""  # noqa: S608 - names only
_LINK = """
SELECT c.checkpoint_id, c.parent_checkpoint_id, json_extract(CAST(c.metadata AS TEXT), '$.source')
FROM checkpoints c WHERE c.thread_id = ? AND c.checkpoint_ns = '' AND c.checkpoint_id = ?
"""
_OLDER = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id < ? LIMIT 1"
_BOUNDARIES = """
SELECT c.checkpoint_id FROM checkpoints c WHERE c.thread_id = :thread_id AND c.checkpoint_ns = ''
    AND (c.checkpoint_id >= :cut OR c.checkpoint_id = :head) AND c.parent_checkpoint_id IS NOT NULL
    AND c.parent_checkpoint_id < :cut AND c.parent_checkpoint_id <> :head
"""
_PRUNED = "thread_id = :thread_id AND checkpoint_id < :cut AND checkpoint_id <> :head"
_NOTE_PRUNED = f"""
INSERT OR IGNORE INTO pruned_checkpoints (thread_id, checkpoint_id)
SELECT thread_id, checkpoint_id FROM checkpoints WHERE checkpoint_ns = '' AND {_PRUNED}
"""  # noqa: S608 - names only
_NOTE_POINT = "INSERT OR REPLACE INTO prune_points (thread_id, checkpoint_id, branch, seq) VALUES (?, ?, ?, ?)"
_REMOVE = (
    f"DELETE FROM prune_points WHERE {_PRUNED}",  # noqa: S608 - names only
    f"DELETE FROM writes WHERE checkpoint_ns = '' AND {_PRUNED}",  # noqa: S608 - names only
    f"DELETE FROM checkpoints WHERE checkpoint_ns = '' AND {_PRUNED}",  # noqa: S608 - names only
)
_SHOWN_THERE = f"""
WITH RECURSIVE line (id) AS (
    SELECT :checkpoint_id UNION SELECT c.parent_checkpoint_id FROM line JOIN checkpoints c
    ON c.thread_id = :thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = line.id
)
{NEWEST_SHOWN}"""  # noqa: S608 - names only
_ONE = """
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB) FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?
"""
_STORE = """
UPDATE checkpoints SET type = ?, checkpoint = ?, metadata = ?
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?
"""
_BIG = """
SELECT checkpoint_id, length(checkpoint) FROM checkpoints
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND length(checkpoint) > :big
    AND json_extract(CAST(metadata AS TEXT), '$.counters_since_delta_snapshot.messages') IS NULL
ORDER BY checkpoint_id DESC
"""
_UNFINISHED_REWIND = """
SELECT 1 FROM rewinds WHERE status = 'planned' AND (thread_id = :thread_id OR EXISTS (
    SELECT 1 FROM json_each(plan, '$.sub_agents') AS along WHERE json_extract(along.value, '$[0]') = :thread_id))
"""
_COUNTERS = "counters_since_delta_snapshot"
_REDUCERS: Mapping[str, Callable[[Any, Sequence[Any]], Any]] = {"messages": merge_messages, "calls": merge_calls}
_EMPTY: Mapping[str, Any] = {"messages": [], "calls": {}}


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was pruned."""

    checkpoints: int = 0
    snapshots: int = 0
    """Snapshots that were removed from checkpoints that stay."""


def should_prune(connection: Connection, thread_id: str, keep_turns: int) -> bool:
    """Whether an idle thread has grown enough past what is kept; costs the same however long it is."""
    allowed = keep_turns + max(1, keep_turns // _SLACK)
    if _first_kept(connection, thread_id, allowed) is not None:
        return True
    named = {"thread_id": thread_id, "big": _BIG_BYTES}
    return len(connection.execute(f"{_BIG} LIMIT {_SPARE_SNAPSHOTS}", named).fetchall()) == _SPARE_SNAPSHOTS


def prune_thread(
    connection: Connection, thread_id: str, keep_turns: int, serializer: "StrictSerializer"
) -> PruneResult:
    """Prune in the caller's transaction. Repeating it changes nothing.

    A thread with an interrupted rewind, its own or its parent's, is not pruned: the rewind needs what exists.
    """
    if connection.execute(_UNFINISHED_REWIND, {"thread_id": thread_id}).fetchone():
        return PruneResult()
    head = connection.execute("SELECT checkpoint_id FROM threads WHERE thread_id = ?", (thread_id,)).fetchone()
    cut = _first_kept(connection, thread_id, keep_turns)
    pruned = 0
    if head is not None and head[0] is not None and cut is not None:
        named = {"thread_id": thread_id, "cut": cut, "head": head[0]}
        for (checkpoint_id,) in connection.execute(_BOUNDARIES, named).fetchall():
            here = {"thread_id": thread_id, "checkpoint_id": checkpoint_id}
            shown = connection.execute(_SHOWN_THERE, here).fetchone() or (0, 0)
            row = (thread_id, checkpoint_id, *shown)
            connection.execute(_NOTE_POINT, row)
            _store_snapshots(connection, (thread_id, "", checkpoint_id), serializer)
        connection.execute(_NOTE_PRUNED, named)
        pruned = [connection.execute(statement, named).rowcount for statement in _REMOVE][-1]
    release_contents(connection, thread_id)
    return PruneResult(pruned, _remove_spare_snapshots(connection, thread_id, serializer))


def _first_kept(connection: Connection, thread_id: str, keep_turns: int) -> str | None:
    """The checkpoint before the oldest turn that is kept; None when there is none before it."""
    named = {"thread_id": thread_id, "skipped": max(keep_turns, 1) - 1}
    row = connection.execute(_FIRST_KEPT, named).fetchone()
    if row is None:
        return None
    found = connection.execute(_LINK, (thread_id, row[0])).fetchone()
    while found is not None and found[1] is not None and found[2] != "input":
        found = connection.execute(_LINK, (thread_id, found[1])).fetchone()
    if found is None or found[1] is None:
        return None
    before = (thread_id, found[1])
    is_there, older = (connection.execute(statement, before).fetchone() for statement in (_LINK, _OLDER))
    return str(found[1]) if is_there and older else None


def _store_snapshots(connection: Connection, key: tuple[str, str, str], serializer: "StrictSerializer") -> None:
    """Give a checkpoint a snapshot of every delta channel that it has none of."""
    from graph_agent.storage.serializer import unwrap_value, wrap_snapshot  # noqa: PLC0415 - it loads LangGraph

    here = read_checkpoint(serializer.decoder, key[0], connection.execute(_ONE, (key[0], key[2])).fetchone())
    values = here.values
    missing = [channel for channel in _REDUCERS if channel in here.versions and channel not in values]
    history = delta_history(connection.execute, key, missing, serializer.decoder) if missing else {}
    for channel, found in history.items():
        seed = unwrap_value(found["seed"]) if "seed" in found else _EMPTY[channel]
        writes = [unwrap_value(value) for _, _, value in found["writes"]]
        values[channel] = wrap_snapshot(_REDUCERS[channel](seed, writes))
    about = {name: value for name, value in here.metadata.items() if name != _COUNTERS}
    # What it depends on is deleted next.
    _store(connection, (key[0], key[2]), {**here.checkpoint, "channel_values": values}, about, serializer)


def _remove_spare_snapshots(connection: Connection, thread_id: str, serializer: "StrictSerializer") -> int:
    """Take the snapshots out of checkpoints that can be rebuilt; the newest and those at a prune point stay.

    The newest may go too where one at a prune point holds half of it already.
    """
    big = connection.execute(_BIG, {"thread_id": thread_id, "big": _BIG_BYTES}).fetchall()
    rebuildable, lengths_at_prune_points = [], []
    for checkpoint_id, length in big:
        parent_id = connection.execute(_LINK, (thread_id, checkpoint_id)).fetchone()[1]
        if parent_id is not None and connection.execute(_LINK, (thread_id, parent_id)).fetchone() is not None:
            rebuildable.append((checkpoint_id, length))
        else:
            lengths_at_prune_points.append(length)
    if rebuildable and not any(2 * length >= rebuildable[0][1] for length in lengths_at_prune_points):
        del rebuildable[0]
    removed = 0
    for checkpoint_id, _ in rebuildable:
        row = connection.execute(_ONE, (thread_id, checkpoint_id)).fetchone()
        here = read_checkpoint(serializer.decoder, thread_id, row)
        if "messages" not in here.values:
            continue
        left = {channel: value for channel, value in here.values.items() if channel != "messages"}
        about = {**here.metadata, _COUNTERS: {**(here.metadata.get(_COUNTERS) or {}), "messages": [1, 1]}}
        about |= {} if here.depends_on is None else {DEPENDS_ON: here.depends_on}
        state = {**here.checkpoint, "channel_values": left}
        _store(connection, (thread_id, checkpoint_id), state, about, serializer)
        removed += 1
    return removed


def _store(
    connection: Connection,
    key: tuple[str, str],
    checkpoint: Mapping[str, Any],
    about: Mapping[str, Any],
    serializer: "StrictSerializer",
) -> None:
    text = json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
    connection.execute(_STORE, (*serializer.dumps_typed(checkpoint), text, *key))


_HEADS = "SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"
_THESE = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


def copy_checkpoints(connection: Connection, source: str, target: str) -> None:
    """Copy every checkpoint and write of one thread to another, in the order in which they were stored."""
    for table, columns in (
        ("checkpoints", "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"),
        ("writes", "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value"),
    ):
        connection.execute(
            f"INSERT OR REPLACE INTO {table} (thread_id, {columns}) "  # noqa: S608 - names only
            f"SELECT ?, {columns} FROM {table} WHERE thread_id = ? ORDER BY rowid",
            (target, source),
        )


def delete_runs(connection: Connection, run_ids: Iterable[str]) -> set[str]:
    """Delete the checkpoints whose metadata name one of these runs, with their writes; which threads had some."""
    wanted = {str(run_id) for run_id in run_ids}
    rows = connection.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, metadata FROM checkpoints"
    ).fetchall()
    gone = [key for *key, metadata in rows if json.loads(metadata or b"{}").get("run_id") in wanted]
    _delete(connection, gone)
    return {key[0] for key in gone}


def keep_latest(connection: Connection, thread_id: str, decoder: Decoder) -> None:
    """Delete all but each namespace's head and the ancestors back to a snapshot of every delta channel of it."""
    for namespace, head in connection.execute(_HEADS, (thread_id,)).fetchall():
        key = (thread_id, namespace, head)
        [metadata] = connection.execute(f"SELECT metadata FROM checkpoints WHERE {_THESE}", key).fetchone()  # noqa: S608 - names only
        # Here the framework counts, for each delta channel, the steps since its last snapshot; absent: a snapshot.
        sought = set(json.loads(metadata or b"{}").get(_COUNTERS) or {})
        kept = {head}
        for ancestor in line(connection.execute, key, decoder):
            if ancestor.id == head:
                continue
            if not sought:
                break
            kept.add(ancestor.id)
            sought -= ancestor.values.keys()
        rows = connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?", key[:2]
        ).fetchall()
        _delete(connection, [(thread_id, namespace, row[0]) for row in rows if row[0] not in kept])


def _delete(connection: Connection, keys: Sequence[Sequence[str]]) -> None:
    for table in ("checkpoints", "writes"):
        connection.executemany(f"DELETE FROM {table} WHERE {_THESE}", keys)  # noqa: S608 - names only


_YOUNG_S = 3600.0
_NAMED = re.compile(rb"blob:sha256:([0-9a-f]{64})")
_COLUMNS = (
    ("journal", "intent"),
    ("journal", "outcome"),
    ("rewinds", "plan"),
    ("call_log", "record"),
    ("transcript", "body"),
    ("decisions", "args"),
    ("checkpoints", "checkpoint"),
    ("writes", "value"),
)
_COMPANION = ".code"
"""Ending of what lies beside the spool of a background shell and goes with it."""
_OUTCOMES = "SELECT outcome FROM journal WHERE outcome LIKE '{\"blob\"%'"
_UNFINISHED = """
SELECT thread_id, call_id, attempt FROM journal WHERE status NOT IN ('success', 'error')
UNION SELECT thread_id, call_id, attempt FROM background_shells WHERE ended_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class GarbageResult:
    """What was removed."""

    files: int = 0
    bytes: int = 0


def referenced_blobs(connection: Connection, blobs: FileBlobs) -> set[str]:
    """Digests of all blobs that a row names, itself or through an outcome that is a blob."""
    found: set[str] = set()
    for table, column in _COLUMNS:
        # A text of JSON escapes nothing of a reference; a packed value holds it as it is.
        rows = connection.execute(
            f"SELECT CAST({column} AS BLOB) FROM {table} "  # noqa: S608 - names from above
            f"WHERE instr(CAST({column} AS BLOB), CAST('blob:sha256:' AS BLOB)) > 0"
        )
        for (value,) in rows:
            found.update(match.decode() for match in _NAMED.findall(value))
    for (outcome,) in connection.execute(_OUTCOMES).fetchall():
        try:
            found.update(match.decode() for match in _NAMED.findall(blobs.get(json.loads(outcome)["blob"])))
        except StorageError:
            # Damaged or gone: it names nothing that anybody could read.
            continue
    return found


def find_garbage(connection: Connection, blobs: FileBlobs, now: float | None = None) -> list[Path]:
    """The files that nothing names and nobody has just written."""
    until = _until(now)
    kept = referenced_blobs(connection, blobs)
    running = {blobs.spool_name(*row) for row in connection.execute(_UNFINISHED)}
    objects, spools = _files_below(blobs.folder / "objects"), _files_below(blobs.folder / "spool")
    garbage = [path for path in objects if f"{path.parent.name}{path.name}" not in kept]
    garbage += [
        path for path in spools if f"{path.parent.name}/{path.name.removesuffix(_COMPANION)}" not in running
    ]
    return [path for path in garbage if _is_old(path, until)]


def collect_garbage(connection: Connection, blobs: FileBlobs, now: float | None = None) -> GarbageResult:
    """Remove what `find_garbage` finds."""
    sizes = [blobs.remove(path, _until(now)) for path in find_garbage(connection, blobs, now)]
    removed = [size for size in sizes if size is not None]
    removed += blobs.drop_unreferenced(lambda: referenced_blobs(connection, blobs), _until(now))
    return GarbageResult(len(removed), sum(removed))


def _until(now: float | None) -> float:
    return (time.time() if now is None else now) - _YOUNG_S


def _is_old(path: Path, until: float) -> bool:
    try:
        return path.lstat().st_mtime <= until
    except OSError:
        return False


def _files_below(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder):
        yield from (Path(where) / name for name in names)
