"""Tables derived from checkpoints for people and plain tools: list entry, transcript and call log of a thread.

They are written in the transaction of each checkpoint of the root graph, and can be rebuilt from it. The writes
of a step are stored at the checkpoint that it started from, so a checkpoint applies the writes of its parent;
values that came without writes (the first input, a fork) are in the checkpoint itself. Odd values are skipped
and never raise: an error here would recur with every checkpoint of the thread. The transcript keeps every
message of every branch: a compaction adds its summary and removes nothing.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from graph_agent.calls import REPLACES, SHORTENED
from graph_agent.errors import DamagedDatabase
from graph_agent.ports import normalize_time
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.json_text import json_text, storable
from graph_agent.storage.sqlite.call_log import abandon_open_calls, fold_calls, reconcile, restart_from
from graph_agent.storage.sqlite.deltas import VISIBLE, begin_branch, delta_history

__all__ = [
    "Place",
    "Projections",
    "StoredCheckpoint",
    "delete_thread_rows",
    "fold_messages",
    "next_nodes",
    "nodes_after",
    "outcome",
    "timestamp",
    "usage",
]

_BRANCH = "branch:to:"
_START = "__start__"
_SENDS = "__pregel_tasks"


def timestamp(value: Any) -> str:
    """A checkpoint's time in the form all tables use: ISO-8601 UTC with milliseconds."""
    try:
        return normalize_time(value)
    except (TypeError, ValueError):
        return storable(str(value or ""))


def outcome(checkpoint: Mapping[str, Any]) -> str:
    """How the turn ended, as the state says; empty while it runs."""
    turn = _part(_part(checkpoint, "channel_values"), "turn")
    ended = turn.get("outcome")
    return storable(ended) if isinstance(ended, str) else ""


def usage(checkpoint: Mapping[str, Any]) -> str:
    """JSON object of what the requests of the thread used, as the state says."""
    return json_text(dict(_part(_part(checkpoint, "channel_values"), "usage")))


def next_nodes(checkpoint: Mapping[str, Any]) -> str:
    """JSON list of the nodes that run next."""
    return json_text(nodes_after(checkpoint))


def nodes_after(checkpoint: Mapping[str, Any]) -> list[str]:
    """The nodes that run next: those sent to, then those with a trigger they have not seen."""
    values = _part(checkpoint, "channel_values")
    sends = values.get(_SENDS) or []
    sent = [str(send.node) for send in sends if hasattr(send, "node")] if isinstance(sends, list | tuple) else []
    return [*dict.fromkeys(sent), *sorted(_triggered(checkpoint, values))]


def _triggered(checkpoint: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    versions = _part(checkpoint, "channel_versions")
    seen = _part(checkpoint, "versions_seen")
    for channel in map(str, values):
        if channel != _START and not channel.startswith(_BRANCH):
            continue
        node = channel.removeprefix(_BRANCH)
        last_seen = _part(seen, node).get(channel)
        # Versions are text of equal width, or numbers; text of both sorts as the framework sorts them.
        if last_seen is None or str(versions.get(channel, "")) > str(last_seen):
            yield node


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


TITLE_LENGTH = 80

_ROLES: tuple[tuple[type[BaseMessage], str], ...] = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "system"),
)
_INSERT = """
INSERT INTO transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at)
SELECT :thread_id, coalesce(max(seq), 0) + 1, (SELECT branch FROM threads WHERE thread_id = :thread_id),
    :message_id, :role, :body, :checkpoint_id, :at
FROM transcript WHERE thread_id = :thread_id
"""
# By the branches first, in each by the id: else a new message is sought among all that the thread ever held.
_SHOWN = f"""
{VISIBLE} SELECT max(t.seq) FROM line CROSS JOIN transcript t ON t.branch = line.branch AND t.seq <= line.upto
WHERE t.thread_id = :thread_id AND t.message_id = :message_id
"""  # noqa: S608 - names only
_REPLACE = f"UPDATE transcript SET body = :body WHERE thread_id = :thread_id AND seq = ({_SHOWN})"  # noqa: S608 - names only
_TURN = """
UPDATE threads SET turns = turns + 1, title = CASE title WHEN '' THEN :title ELSE title END
WHERE thread_id = :thread_id
"""


class Place(NamedTuple):
    """Where rows come from."""

    thread_id: str
    checkpoint_id: str
    at: str


def fold_messages(
    connection: sqlite3.Connection, place: tuple[str, str, str], messages: Iterable[BaseMessage]
) -> None:
    """Add what is new on the thread's branch, replace the body of what it shows already.

    A message taken out of the state stays here, and one that was shortened there stays whole. The same id may stand
    on two branches with different bodies.
    """
    where = Place(*place)
    for index, message in enumerate(messages):
        if isinstance(message, RemoveMessage):
            continue
        row = {
            **where._asdict(),
            "message_id": storable(str(message.id or f"{where.checkpoint_id}:{index}")),
            "role": _role(message),
            "body": json_text(_body(message)),
        }
        if _is_shown(connection, row, message):
            continue
        connection.execute(_INSERT, row)
        if row["role"] == "user":
            connection.execute(_TURN, {"thread_id": where.thread_id, "title": _title(message)})


def _is_shown(connection: sqlite3.Connection, row: dict[str, Any], message: BaseMessage) -> bool:
    """Whether the branch shows the message already; its body is brought up to what it is now."""
    if message.response_metadata.get(SHORTENED):
        return connection.execute(_SHOWN, row).fetchone()[0] is not None
    return connection.execute(_REPLACE, row).rowcount == 1


def _role(message: BaseMessage) -> str:
    if REPLACES in message.response_metadata:
        return "summary"
    return next((role for kind, role in _ROLES if isinstance(message, kind)), storable(message.type))


def _body(message: BaseMessage) -> dict[str, Any]:
    extra = {
        "tool_calls": getattr(message, "tool_calls", None),
        "tool_call_id": getattr(message, "tool_call_id", None),
        "name": message.name,
        "status": getattr(message, "status", None),
        "usage": getattr(message, "usage_metadata", None),
    }
    return {"content": message.content, **{name: value for name, value in extra.items() if value}}


def _title(message: BaseMessage) -> str:
    words = " ".join(str(message.text).split())
    return storable(words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1].rstrip()}…")


_STEP = """
SELECT channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel IN ('messages', 'calls')
ORDER BY task_path, task_id, idx
"""
_MOVE = """
UPDATE threads SET checkpoint_id = :checkpoint_id, next_nodes = :next_nodes, outcome = :outcome, usage = :usage,
    updated_at = :at
WHERE thread_id = :thread_id AND
"""
_ADVANCE = f"{_MOVE} (checkpoint_id IS NULL OR checkpoint_id IN (:parent_id, :checkpoint_id))"
_SWITCH = f"{_MOVE} checkpoint_id < :checkpoint_id"
_LISTED = "INSERT OR IGNORE INTO threads (thread_id, created_at, updated_at) VALUES (:thread_id, :at, :at)"
_NO_HEAD = (
    "UPDATE threads SET checkpoint_id = NULL, next_nodes = '[]', outcome = '', usage = NULL WHERE thread_id = ?"
)
_STORED = """
SELECT parent_checkpoint_id, type, checkpoint, CAST(metadata AS TEXT)
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY
"""
_LOG = f"{_STORED} rowid"
_NEWEST = f"{_STORED} checkpoint_id DESC LIMIT 1"
_THREAD_TABLES = (
    "checkpoints",
    "writes",
    "threads",
    "transcript",
    "branches",
    "call_log",
    "journal",
    "decisions",
    "inbox",
    "file_states",
    "rewinds",
    "prune_points",
    "pruned_checkpoints",
    "imported_checkpoints",
    "background_shells",
)


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint of the root graph, as it is being stored."""

    thread_id: str
    parent_id: str | None
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def brings_values(self) -> bool:
        """Whether it may hold channel values that no write tells of."""
        return self.parent_id is None or self.metadata.get("source") != "loop"

    @property
    def values(self) -> Mapping[str, Any]:
        """The values it holds itself."""
        return self.checkpoint.get("channel_values") or {}

    @property
    def step(self) -> int:
        """Its number in the run."""
        step = self.metadata.get("step")
        return step if isinstance(step, int) else -1


class Projections:
    """Folds checkpoints into the tables."""

    def __init__(self, decoder: Decoder, unwrap_value: Callable[[Any], Any]) -> None:
        self.decoder = decoder
        self._unwrap = unwrap_value

    def fold(self, connection: sqlite3.Connection, stored: StoredCheckpoint) -> None:
        """Bring the tables up to this checkpoint; folding one a second time changes nothing."""
        thread_id, checkpoint_id = stored.thread_id, str(stored.checkpoint["id"])
        at = timestamp(stored.checkpoint.get("ts"))
        place = (thread_id, checkpoint_id, at)
        is_branch = _move_head(connection, place, stored)
        if is_branch:
            begin_branch(connection, place, stored.parent_id, stored.step)
            restart_from(connection, place, self._calls_so_far(connection, stored))
        for channel, value in self._values(connection, stored):
            if channel == "messages":
                fold_messages(connection, place, _messages(value))
            elif isinstance(value, Mapping) and not is_branch:
                fold_calls(connection, place, value)

    def fold_without_ancestors(self, connection: sqlite3.Connection, stored: StoredCheckpoint, branch: int) -> None:
        """Fold a checkpoint whose ancestors are gone: its branch is known, and it brings its values."""
        thread_id, at = stored.thread_id, timestamp(stored.checkpoint.get("ts"))
        place = (thread_id, str(stored.checkpoint["id"]), at)
        connection.execute(_LISTED, {"thread_id": thread_id, "at": at})
        head = {**_head(place, stored), "branch": branch}
        if not connection.execute(f"{_MOVE} checkpoint_id IS NULL", head).rowcount:
            connection.execute(f"{_MOVE} 1", head)
            abandon_open_calls(connection, thread_id)
        connection.execute("UPDATE threads SET branch = :branch WHERE thread_id = :thread_id", head)
        own = {name: self._unwrap(value) for name, value in stored.values.items()}
        fold_messages(connection, place, _messages(own.get("messages", ())))
        if isinstance(calls := own.get("calls"), Mapping):
            reconcile(connection, place, calls)

    def find_head(self, connection: sqlite3.Connection, thread_id: str) -> None:
        """After checkpoints were deleted: the newest that stands is the head. What was said and done stays."""
        connection.execute(_NO_HEAD, (thread_id,))
        newest = connection.execute(_NEWEST, (thread_id,)).fetchone()
        if newest is not None:
            self.fold(connection, self._stored(thread_id, newest))

    def replay(self, connection: sqlite3.Connection, thread_id: str) -> None:
        """Fold every stored checkpoint of the thread again, in the order in which they were stored."""
        for stored in self.stored(connection, thread_id):
            self.fold(connection, stored)

    def stored(self, connection: sqlite3.Connection, thread_id: str) -> Iterator[StoredCheckpoint]:
        """The checkpoints of the thread's root graph, in the order in which they were stored."""
        for row in connection.execute(_LOG, (thread_id,)).fetchall():
            yield self._stored(thread_id, row)

    def _stored(self, thread_id: str, row: tuple[Any, ...]) -> StoredCheckpoint:
        parent_id, kind, content, metadata = row
        try:
            noted = json.loads(metadata or "{}")
        except ValueError as error:
            raise DamagedDatabase(
                f"what is noted of a checkpoint of thread {thread_id} cannot be read ({error}); "
                "`graph-agent doctor --repair` tells what can be."
            ) from error
        return StoredCheckpoint(thread_id, parent_id, self.decoder.checkpoint(kind, content), noted)

    def _values(self, connection: sqlite3.Connection, stored: StoredCheckpoint) -> Iterator[tuple[str, Any]]:
        # A fork, or an update from outside, brings the value of a channel whose writes on the parent are those of a
        # step that it does not repeat.
        own = stored.values if stored.brings_values else {}
        if stored.parent_id:
            rows = connection.execute(_STEP, (stored.thread_id, stored.parent_id)).fetchall()
            written = [row for row in rows if row[0] not in own]
            yield from (
                (channel, self._unwrap(self.decoder.write(channel, kind, value)))
                for channel, kind, value in written
            )
        yield from ((name, self._unwrap(own[name])) for name in ("messages", "calls") if name in own)

    def _calls_so_far(self, connection: sqlite3.Connection, stored: StoredCheckpoint) -> list[Any]:
        """All writes that the calls of the checkpoint rest on, oldest first."""
        if "calls" in stored.values:
            return [self._unwrap(stored.values["calls"])]
        key = (stored.thread_id, "", str(stored.checkpoint["id"]))
        history = delta_history(connection, key, ["calls"], self.decoder)["calls"]
        writes = [self._unwrap(value) for _, _, value in history["writes"]]
        return [self._unwrap(history["seed"]), *writes] if "seed" in history else writes


def delete_thread_rows(connection: sqlite3.Connection, thread_id: str) -> None:
    """Delete every row of a thread, facts included. Its lease stays: a process may still hold the lock."""
    for table in _THREAD_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - names only


def _move_head(connection: sqlite3.Connection, place: tuple[str, str, str], stored: StoredCheckpoint) -> bool:
    """Make the checkpoint the head unless a newer one is; whether it leaves the line of the head so far."""
    head = _head(place, stored)
    if connection.execute(_ADVANCE, head).rowcount:
        return False
    if connection.execute(_LISTED, head).rowcount:
        connection.execute(_ADVANCE, head)
        return False
    return connection.execute(_SWITCH, head).rowcount == 1


def _head(place: tuple[str, str, str], stored: StoredCheckpoint) -> dict[str, Any]:
    return {
        **dict(zip(("thread_id", "checkpoint_id", "at"), place, strict=True)),
        "parent_id": stored.parent_id,
        "next_nodes": next_nodes(stored.checkpoint),
        "outcome": outcome(stored.checkpoint),
        "usage": usage(stored.checkpoint),
    }


def _messages(value: Any) -> list[BaseMessage]:
    whole = value if isinstance(value, list | tuple) else [value]
    return [message for message in whole if isinstance(message, BaseMessage)]
