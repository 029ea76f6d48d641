"""LangGraph's checkpointer over the database: every write is one transaction, committed when the method returns.

The two tables have the format of LangGraph's own SQLite savers.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import id as framework_ids

from graph_agent.errors import InternalError
from graph_agent.storage import Connection
from graph_agent.storage.serializer import StrictSerializer
from graph_agent.storage.sqlite.checkpoint_rows import (
    DEPENDS_ON,
    BrokenCheckpoint,
    read_checkpoint,
    split_metadata,
    write_checksums,
)
from graph_agent.storage.sqlite.database import Database, release_free_pages
from graph_agent.storage.sqlite.deltas import delta_history, pending_writes
from graph_agent.storage.sqlite.projections import (
    Projections,
    StoredCheckpoint,
    applied_writes,
    delete_thread_rows,
    nodes_after,
)
from graph_agent.storage.sqlite.pruning import (
    PruneResult,
    copy_checkpoints,
    delete_runs,
    keep_latest,
    prune_thread,
    should_prune,
)
from graph_agent.storage.sqlite.repair import rebuild_thread
from graph_agent.storage.sqlite.search_index import update_search_index
from graph_agent.storage.sqlite.thread_fork import Fork, fork_thread

__all__ = ["CheckpointSaver", "SqliteBarrier", "time_in"]

_PUT = """
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET parent_checkpoint_id = excluded.parent_checkpoint_id, type = excluded.type,
    checkpoint = excluded.checkpoint, metadata = excluded.metadata
"""
# The copy of a checkpoint that came from a file is as foreign as the checkpoint itself; a copy has the same parent.
_COPY_IS_IMPORTED = """
INSERT OR IGNORE INTO imported_checkpoints (thread_id, checkpoint_id) SELECT :thread, :id WHERE EXISTS (
    SELECT 1 FROM imported_checkpoints WHERE thread_id = :thread AND (:parent IS NULL OR checkpoint_id = :parent))
"""
_PUT_WRITE = """
INSERT OR {what} INTO writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ONE = """
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB) FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_NEWEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
# The list of threads remembers the head of the root graph: it tells a lost head from a thread that has none yet.
_HEADS = """
SELECT (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2),
    (SELECT checkpoint_id FROM threads t WHERE thread_id = ?1 AND ?2 = '' AND NOT EXISTS (
        SELECT 1 FROM checkpoints c WHERE c.thread_id = ?1 AND c.checkpoint_ns = ?2
        AND c.checkpoint_id = t.checkpoint_id))
"""
_IDS = ("thread_id", "checkpoint_ns", "checkpoint_id")
_LAST_TIME = "_last_v6_timestamp"
"""Where the framework keeps the time in the last id that it gave; the next is later, whatever the clock says."""

_Key = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""
_T = TypeVar("_T")


def _asynchronous_only(method: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InternalError(f"checkpoints are read and written asynchronously only: use `a{method}` and `ainvoke`")

    return refuse


class CheckpointSaver(BaseCheckpointSaver[str]):
    """The checkpointer of all threads of one database. It never works on the thread of the caller.

    Args:
        database: where they are.
        deciding: nodes that only decide, at once, from the state. A checkpoint that only such nodes follow is not
            synced by itself but by the next one: nothing is asked, run or sent in between.
    """

    get_tuple = _asynchronous_only("get_tuple")
    list = _asynchronous_only("list")
    put = _asynchronous_only("put")
    put_writes = _asynchronous_only("put_writes")
    delete_thread = _asynchronous_only("delete_thread")
    get_delta_channel_history = _asynchronous_only("get_delta_channel_history")

    def __init__(self, database: Database, deciding: Collection[str] = ()) -> None:
        self._serializer = StrictSerializer()
        super().__init__(serde=self._serializer)
        self._decoder = self._serializer.decoder
        self._database = database
        self._deciding = frozenset(deciding)
        self._projections = Projections(self._decoder)
        self._last_history: tuple[tuple[_Key, tuple[str, ...]], Mapping[str, DeltaChannelHistory]] | None = None
        """Which channels of which checkpoint were asked for last, and what they depend on."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the thread's latest; None where there is none."""
        key = _key(config)

        def read(connection: Connection) -> tuple[CheckpointTuple | None, str]:
            newest, lost = connection.execute(_HEADS, key[:2]).fetchone()
            if lost is not None and not key[2]:
                raise BrokenCheckpoint(key[0], lost, "it is the newest one, and is missing")
            row = connection.execute(_ONE, (*key[:2], key[2] or newest)).fetchone()
            return None if row is None else self._tuple(connection, key[:2], row), str(newest or "")

        found, newest = await self._database.run(read)
        # The framework takes the next id from the clock. Where that was set back, the next id would sort below what
        # is stored, and be lost to the next run.
        setattr(framework_ids, _LAST_TIME, max(getattr(framework_ids, _LAST_TIME) or 0, time_in(newest)))
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name is the framework's
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints newest first; `filter` compares whole values of metadata keys."""
        named = config["configurable"] if config else {}
        sought = {f"{name} = ?": str(named[name]) for name in _IDS if named.get(name) is not None}
        if before and (bound := get_checkpoint_id(before)) is not None:
            sought["checkpoint_id < ?"] = bound
        statement = (
            f"SELECT {', '.join(_IDS)}, metadata FROM checkpoints WHERE {' AND '.join(sought) or 'TRUE'} "  # noqa: S608 - names only
            "ORDER BY checkpoint_id DESC"
        )
        values = [*sought.values()]
        rows = await self._database.run(lambda connection: connection.execute(statement, values).fetchall())
        given = 0
        for *key, text in rows:
            if limit is not None and given >= limit:
                return
            # Compared in Python, so that no name from outside becomes part of a statement.
            metadata, _ = split_metadata(json.loads(text or b"{}"))
            if any(name not in metadata or metadata[name] != value for name, value in (filter or {}).items()):
                continue
            found = await self.aget_tuple(_config(*key))
            if found is not None:
                given += 1
                yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - channels are stored inline
    ) -> RunnableConfig:
        """Store a checkpoint and what is projected from it, in one transaction."""
        thread_id, namespace, parent_id = _key(config)
        about = get_checkpoint_metadata(config, metadata)
        content = self._serializer.dumps_typed(checkpoint)
        row = (thread_id, namespace, checkpoint["id"], parent_id or None, *content)
        stored = StoredCheckpoint(thread_id, parent_id or None, checkpoint, about)

        def store(connection: Connection) -> None:
            applied = applied_writes(connection, stored) if not namespace else []
            noted = {**about, DEPENDS_ON: write_checksums(applied)} if applied else about
            text = json.dumps(noted, ensure_ascii=False).encode("utf-8", "replace")
            connection.execute(_PUT, (*row, text))
            if not namespace and about.get("source") == "fork":
                connection.execute(_COPY_IS_IMPORTED, {"thread": thread_id, "id": row[2], "parent": row[3]})
            if not namespace:
                self._projections.fold(connection, stored, applied)

        self._last_history = None
        following = nodes_after(checkpoint)
        is_synced = not following or not self._deciding.issuperset(following)
        write = self._database.write if is_synced else self._database.quick_write
        await write(store, thread_id=thread_id)
        return _config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote: the first time counts, on the framework's own channels the last.

        Not synced by itself: the checkpoint that follows syncs it. Until then a power failure takes the step back
        to the checkpoint before, where the synced journal has the outcome, and the synced decision the answer.
        """
        task = (*_key(config), task_id, task_path)
        what = "REPLACE" if all(channel in WRITES_IDX_MAP for channel, _ in writes) else "IGNORE"
        rows = [
            (*task, WRITES_IDX_MAP.get(channel, index), channel, *self._serializer.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        statement = _PUT_WRITE.format(what=what)
        self._last_history = None
        await self._database.quick_write(
            lambda connection: connection.executemany(statement, rows), thread_id=task[0]
        )

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything that is stored about a thread, journal and decisions included."""
        await self._write(lambda connection: delete_thread_rows(connection, thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, even if later ones depend on them: prune a thread in use instead.

        Transcript, call log and journal keep what was said and done in them.
        """

        def delete(connection: Connection) -> None:
            for thread_id in delete_runs(connection, run_ids):
                self._projections.find_head(connection, thread_id)

        await self._write(delete)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes; the copy gets projections of its own."""

        def copy(connection: Connection) -> None:
            copy_checkpoints(connection, source_thread_id, target_thread_id)
            rebuild_thread(connection, target_thread_id, self._projections)

        await self._write(copy)

    async def fork(self, fork: Fork) -> None:
        """Create a thread from a checkpoint of another one; see `fork_thread`."""
        await self._write(lambda connection: fork_thread(connection, fork, self._projections))

    async def prune_thread(self, thread_id: str, keep_turns: int) -> PruneResult:
        """Delete the checkpoints before a thread's last turns; see `pruning.prune_thread`."""
        return await self._write(
            lambda connection: prune_thread(connection, thread_id, keep_turns, self._serializer)
        )

    async def prune_if_grown(self, thread_id: str, keep_turns: int) -> PruneResult:
        """Prune a thread that has grown enough past what is kept, and release the space.

        New messages are added to the search index: losing that on a power failure loses nothing.
        """
        self._last_history = None
        await self._database.write(
            lambda connection: update_search_index(connection, thread_id), synced=False, thread_id=thread_id
        )
        if not await self._database.run(lambda connection: should_prune(connection, thread_id, keep_turns)):
            return PruneResult()
        pruned = await self.prune_thread(thread_id, keep_turns)
        await self._database.run(release_free_pages)
        return pruned

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` keeps each namespace's head and every ancestor that its delta channels depend on.

        `delete` and `delete_all` delete the threads. `prune_thread` is how this program prunes its own threads.
        """

        def prune(connection: Connection) -> None:
            for thread_id in thread_ids:
                if strategy in ("delete", "delete_all"):
                    delete_thread_rows(connection, thread_id)
                else:
                    keep_latest(connection, thread_id, self._decoder)

        await self._write(prune)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel depends on: the nearest stored value among the ancestors, and the writes since.

        A turn asks twice, to see where the thread stands and to continue from there: the last answer is kept until
        something is written. Nothing that a checkpoint depends on changes otherwise while its thread is held.
        """
        thread_id, namespace, checkpoint_id = key = _key(config)
        asked = (key, tuple(channels))
        if checkpoint_id and self._last_history is not None and self._last_history[0] == asked:
            return self._last_history[1]

        def walk(connection: Connection) -> Mapping[str, DeltaChannelHistory]:
            target = checkpoint_id or connection.execute(_NEWEST, (thread_id, namespace)).fetchone()[0] or ""
            place = (thread_id, namespace, target)
            histories = delta_history(connection.execute, place, channels, self._decoder)
            return cast("Mapping[str, DeltaChannelHistory]", histories)

        found = await self._database.run(walk)
        self._last_history = (asked, found)
        return found

    async def rebuild_projections(self, thread_id: str) -> None:
        """Derive transcript, call log and list entry of a thread again from its checkpoints."""
        await self._write(lambda connection: rebuild_thread(connection, thread_id, self._projections))

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - the name is the framework's
        """A version that sorts after the current one. Short: every checkpoint holds some twenty of them."""
        number = int(str(current).split(".")[0]) if current else 0
        return f"{number + 1:09}.{random.randrange(16**6):06x}"  # noqa: S311 - distinguishes branches, no secret

    async def _write(self, work: Callable[[Connection], _T]) -> _T:
        self._last_history = None
        return await self._database.write(work)

    def _tuple(self, connection: Connection, place: tuple[str, str], row: Sequence[Any]) -> CheckpointTuple:
        thread_id, namespace = place
        found = read_checkpoint(self._decoder, thread_id, row)
        return CheckpointTuple(
            _config(thread_id, namespace, found.id),
            cast("Checkpoint", found.checkpoint),
            cast("CheckpointMetadata", found.metadata),
            _config(thread_id, namespace, found.parent_id) if found.parent_id else None,
            pending_writes(connection.execute, (thread_id, namespace, found.id), self._decoder),
        )


def _key(config: RunnableConfig) -> _Key:
    named = config["configurable"]
    return str(named["thread_id"]), str(named.get("checkpoint_ns") or ""), str(get_checkpoint_id(config) or "")


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id},
    }


_VERSION = 6
_END = 1 << 60
_YEAR = 365 * 86400 * 10**7


def time_in(checkpoint_id: str) -> int:
    """The time in an id, in units of 100 ns; 0 where it has none, or one that leaves no room for later ones."""
    try:
        found = UUID(checkpoint_id)
    except ValueError:
        return 0
    time = (found.int >> 80) << 12 | (found.int >> 64) & 0xFFF
    return time if found.version == _VERSION and time < _END - _YEAR else 0


_EXISTS = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_POLL_S = 0.01


class SqliteBarrier:
    """The port `Barrier`. Checkpoints are stored in order, so one that exists proves all before it."""

    def __init__(self, database: Database, timeout_s: float = 5.0) -> None:
        self._database = database
        self._timeout_s = timeout_s

    def proves(self, saver: object) -> bool:
        return isinstance(saver, CheckpointSaver) and saver.path == self._database.path

    async def wait(self, thread_id: str, checkpoint_id: str, namespace: str = "") -> bool:
        key = (thread_id, namespace, checkpoint_id)
        give_up = time.monotonic() + self._timeout_s
        while True:
            if await self._database.rows(_EXISTS, key):
                return True
            if time.monotonic() >= give_up:
                return False
            await asyncio.sleep(_POLL_S)
