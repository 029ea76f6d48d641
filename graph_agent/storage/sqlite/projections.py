"""Tables derived from checkpoints for people and plain tools: list entry, transcript and call log of a thread.

They are written in the transaction of each checkpoint of the root graph, and can be rebuilt from it. The writes
of a step are stored at the checkpoint that it started from, so a checkpoint applies the writes of its parent;
values that came without writes (the first input, a fork) are in the checkpoint itself. Odd values are skipped
and never raise: an error here would recur with every checkpoint of the thread. Transcript and call log keep the
messages and calls of every branch: a compaction adds its summary and removes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from graph_agent.calls import NEW_MESSAGE, REPLACES, SHORTENED, merge_calls
from graph_agent.ports import normalize_time
from graph_agent.ports.checkpoint_values import planned_tasks
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection
from graph_agent.storage.decoder import Decoder
from graph_agent.storage.serializer import unwrap_value
from graph_agent.storage.sqlite.checkpoint_rows import read_checkpoint
from graph_agent.storage.sqlite.deltas import VISIBLE, begin_branch, delta_history
from graph_agent.storage.sqlite.row_values import load_json
from graph_agent.storage.sqlite.search_index import update_search_index

__all__ = [
    "Place",
    "Projections",
    "StoredCheckpoint",
    "applied_writes",
    "delete_thread_rows",
    "delete_threads",
    "fold_calls",
    "fold_messages",
    "nodes_after",
    "outcome",
    "restart_from",
    "timestamp",
    "usage",
]

_STEP = """
SELECT task_id, task_path, idx, channel, type, CASE WHEN channel IN ('messages', 'calls', 'mode') THEN value END
FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_path, task_id, idx
"""
_FOLDED = ("messages", "calls", "mode")
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
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY
"""


class Place(NamedTuple):
    """The checkpoint that rows come from."""

    thread_id: str
    checkpoint_id: str
    at: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint of the root graph, as it is being stored."""

    thread_id: str
    parent_id: str | None
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def place(self) -> Place:
        """Where the rows derived from it come from."""
        return Place(self.thread_id, str(self.checkpoint["id"]), timestamp(self.checkpoint.get("ts")))

    @property
    def values(self) -> Mapping[str, Any]:
        """The values it holds itself."""
        return self.checkpoint.get("channel_values") or {}

    def head(self) -> dict[str, Any]:
        """The columns of the list entry of a thread whose head it is."""
        return {
            **self.place._asdict(),
            "parent_id": self.parent_id,
            "next_nodes": json_text(nodes_after(self.checkpoint)),
            "outcome": outcome(self.checkpoint),
            "usage": usage(self.checkpoint),
        }


def applied_writes(connection: Connection, stored: StoredCheckpoint) -> list[tuple[Any, ...]]:
    """The writes at its parent: task, path, number there, channel, type, and the value where it is folded."""
    if stored.parent_id is None:
        return []
    return connection.execute(_STEP, (stored.thread_id, stored.parent_id)).fetchall()


class Projections:
    """Folds checkpoints into the tables."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def fold(
        self,
        connection: Connection,
        stored: StoredCheckpoint,
        applied: Sequence[tuple[Any, ...]] | None = None,
    ) -> None:
        """Bring the tables up to this checkpoint; folding one a second time changes nothing.

        Args:
            applied: its `applied_writes`, if they have been read.
        """
        place, head = stored.place, stored.head()
        is_branch = False
        if not connection.execute(_ADVANCE, head).rowcount:
            if connection.execute(_LISTED, head).rowcount:
                connection.execute(_ADVANCE, head)
            else:
                # It leaves the line of the head so far, unless that is newer.
                is_branch = connection.execute(_SWITCH, head).rowcount == 1
        if is_branch:
            step = stored.metadata.get("step")
            begin_branch(connection, place, stored.parent_id, step if isinstance(step, int) else -1)
            restart_from(connection, place, self._calls_so_far(connection, stored))
        # A fork, or an update from outside, brings the value of a channel whose writes on the parent are those of a
        # step that it does not repeat.
        brings_values = stored.parent_id is None or stored.metadata.get("source") != "loop"
        own = stored.values if brings_values else {}
        rows = applied_writes(connection, stored) if applied is None else applied
        changes = [
            (channel, self.decoder.write(channel, kind, value))
            for _, _, _, channel, kind, value in rows
            if channel in _FOLDED and channel not in own
        ]
        changes += [(name, own[name]) for name in ("messages", "calls") if name in own]
        for channel, change in changes:
            value = unwrap_value(change)
            if channel == "messages":
                fold_messages(connection, place, value)
            elif channel == "mode":
                # A plan was accepted: later processes continue in the mode that it was accepted with.
                connection.execute("UPDATE threads SET mode = ? WHERE thread_id = ?", (str(value), place.thread_id))
            elif isinstance(value, Mapping) and not is_branch:
                fold_calls(connection, place, value)

    def fold_without_ancestors(self, connection: Connection, stored: StoredCheckpoint, branch: int) -> None:
        """Fold a checkpoint whose ancestors are gone: its branch is known, and it brings its values."""
        place, head = stored.place, {**stored.head(), "branch": branch}
        connection.execute(_LISTED, head)
        if not connection.execute(f"{_MOVE} checkpoint_id IS NULL", head).rowcount:
            connection.execute(f"{_MOVE} TRUE", head)
            connection.execute(_ABANDON, (place.thread_id,))
        connection.execute("UPDATE threads SET branch = :branch WHERE thread_id = :thread_id", head)
        own = {name: unwrap_value(value) for name, value in stored.values.items()}
        fold_messages(connection, place, own.get("messages", ()))
        if isinstance(calls := own.get("calls"), Mapping):
            _correct_calls(connection, place, calls)

    def find_head(self, connection: Connection, thread_id: str) -> None:
        """After checkpoints were deleted: the newest that exists is the head. Transcript and call log stay."""
        connection.execute(_NO_HEAD, (thread_id,))
        for stored in self._stored(connection, thread_id, "checkpoint_id DESC LIMIT 1"):
            self.fold(connection, stored)

    def replay(self, connection: Connection, thread_id: str) -> None:
        """Fold every stored checkpoint of the thread again, in the order in which they were stored."""
        for stored in self.stored(connection, thread_id):
            self.fold(connection, stored)

    def stored(self, connection: Connection, thread_id: str) -> Iterator[StoredCheckpoint]:
        """The checkpoints of the thread's root graph, in the order in which they were stored."""
        return self._stored(connection, thread_id, "rowid")

    def _stored(self, connection: Connection, thread_id: str, order: str) -> Iterator[StoredCheckpoint]:
        for row in connection.execute(f"{_STORED} {order}", (thread_id,)).fetchall():
            found = read_checkpoint(self.decoder, thread_id, row)
            yield StoredCheckpoint(thread_id, found.parent_id, found.checkpoint, found.metadata)

    def _calls_so_far(self, connection: Connection, stored: StoredCheckpoint) -> list[Any]:
        """All writes that the calls of the checkpoint depend on, oldest first."""
        if "calls" in stored.values:
            return [unwrap_value(stored.values["calls"])]
        key = (stored.thread_id, "", stored.place.checkpoint_id)
        history = delta_history(connection.execute, key, ["calls"], self.decoder)["calls"]
        writes = [unwrap_value(value) for _, _, value in history["writes"]]
        return [unwrap_value(history["seed"]), *writes] if "seed" in history else writes


def timestamp(value: Any) -> str:
    """A checkpoint's time in the form all tables use: ISO-8601 UTC with milliseconds."""
    try:
        return normalize_time(value)
    except (TypeError, ValueError):
        return storable(str(value or ""))


def outcome(checkpoint: Mapping[str, Any]) -> str:
    """How the turn ended, as the state says; empty while it runs."""
    ended = _part(_part(checkpoint, "channel_values"), "turn").get("outcome")
    return storable(ended) if isinstance(ended, str) else ""


def usage(checkpoint: Mapping[str, Any]) -> str:
    """JSON object of what the requests of the thread used, as the state says."""
    return json_text(dict(_part(_part(checkpoint, "channel_values"), "usage")))


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def nodes_after(checkpoint: Mapping[str, Any]) -> list[str]:
    """The nodes that run next, the one that takes in a message included; none where that cannot be told."""
    try:
        return list(dict.fromkeys(task.node for task in planned_tasks(checkpoint)))
    except (AttributeError, TypeError, ValueError):
        return []


_TITLE_LENGTH = 80
_ROLES: tuple[tuple[type[BaseMessage], str], ...] = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "system"),
)
_INSERT_MESSAGE = """
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


def fold_messages(connection: Connection, place: Place, written: Any) -> None:
    """Add what is new on the thread's branch, replace the body of what it shows already.

    A message that was removed from the state stays here, and one that was shortened there stays whole. The same id
    may occur on two branches with different bodies.

    Args:
        written: a message or a list of them; anything else is skipped.
    """
    messages = written if isinstance(written, list | tuple) else [written]
    for index, message in enumerate(message for message in messages if isinstance(message, BaseMessage)):
        if isinstance(message, RemoveMessage):
            continue
        role = next((role for kind, role in _ROLES if isinstance(message, kind)), storable(message.type))
        row = {
            **place._asdict(),
            "message_id": storable(str(message.id or f"{place.checkpoint_id}:{index}")),
            "role": "summary" if REPLACES in message.response_metadata else role,
            "body": json_text(_body(message)),
        }
        if message.response_metadata.get(SHORTENED):
            is_shown = connection.execute(_SHOWN, row).fetchone()[0] is not None
        else:
            is_shown = connection.execute(_REPLACE, row).rowcount == 1
        if is_shown:
            continue
        connection.execute(_INSERT_MESSAGE, row)
        if row["role"] == "user":
            words = " ".join(str(message.text).split())
            title = words if len(words) <= _TITLE_LENGTH else f"{words[: _TITLE_LENGTH - 1].rstrip()}…"
            connection.execute(_TURN, {"thread_id": place.thread_id, "title": storable(title)})


def _body(message: BaseMessage) -> dict[str, Any]:
    extra = {
        "tool_calls": getattr(message, "tool_calls", None),
        "tool_call_id": getattr(message, "tool_call_id", None),
        "name": message.name,
        "status": getattr(message, "status", None),
        "usage": getattr(message, "usage_metadata", None),
    }
    return {"content": message.content, **{name: value for name, value in extra.items() if value}}


_INSERT_CALL = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
SELECT :thread_id, :call_id, coalesce(max(seq), 0) + 1, :tool_name, :status, :risk, :record, :checkpoint_id, :at
FROM call_log WHERE thread_id = :thread_id
"""
_UPDATE_CALL = """
UPDATE call_log SET tool_name = :tool_name, status = :status, risk = :risk, record = :record,
    checkpoint_id = :checkpoint_id, updated_at = :at, abandoned = 0
WHERE thread_id = :thread_id AND call_id = :call_id
"""
_IN_JOURNAL = """
SELECT 1 FROM journal WHERE thread_id = ? AND call_id = ? AND outcome IS NOT NULL
    AND json_extract(outcome, '$.output') = ?
"""
_LONG_RESULT = 256
# A call that is open on a branch which its thread left: nobody asks about it any more.
_ABANDON = """
UPDATE call_log SET abandoned = 1 WHERE thread_id = ? AND status NOT IN ('success', 'error', 'cancelled')
"""
_LOGGED = """
SELECT status, coalesce(CAST(json_extract(record, '$.attempt') AS INTEGER), 1) FROM call_log
WHERE thread_id = ? AND call_id = ?
"""
_REOPEN = "UPDATE call_log SET abandoned = 0 WHERE thread_id = ? AND call_id = ?"


def fold_calls(connection: Connection, place: Place, write: Mapping[Any, Any]) -> None:
    """Lay each change of the write over the stored record.

    Unlike the state's reducer this keeps the records of earlier messages and takes any status, because a branch may
    start again from an older one; only a lower attempt is passed over, and a partial record of an unknown call.
    The records of a new message are whole: nothing of a call that had the same id on another branch stays.
    """
    for call_id, change in _changes(write):
        _fold_call(connection, place, call_id, change, is_whole=NEW_MESSAGE in write)


def restart_from(connection: Connection, place: Place, writes: Iterable[Any]) -> None:
    """Make the call log that of a checkpoint that was resumed, given all writes that its calls depend on.

    Each call of that state gets the record that it has there; what is open elsewhere is abandoned.
    """
    connection.execute(_ABANDON, (place.thread_id,))
    accepted = []  # What the reducer accepts of each write.
    for write in writes:
        if isinstance(write, Mapping):
            changes = {
                call_id: change
                for call_id, change in _changes(write)
                if isinstance(change.get("status", ""), str) and isinstance(change.get("attempt", 1), int)
            }
            accepted.append({NEW_MESSAGE: {}, **changes} if NEW_MESSAGE in write else changes)
    for call_id, record in merge_calls({}, accepted).items():
        _fold_call(connection, place, call_id, record, is_whole=True)


def _correct_calls(connection: Connection, place: Place, calls: Mapping[Any, Any]) -> None:
    """Correct what the call log says otherwise than the calls of a state; what it says alike stays as it is."""
    for call_id, record in _changes(calls):
        row = connection.execute(_LOGGED, (place.thread_id, call_id)).fetchone()
        if row == (record.get("status"), _attempt(record)):
            connection.execute(_REOPEN, (place.thread_id, call_id))
        else:
            _fold_call(connection, place, call_id, record, is_whole=True)


def _changes(write: Mapping[Any, Any]) -> list[tuple[str, Mapping[Any, Any]]]:
    return [
        (storable(call_id), change)
        for call_id, change in write.items()
        if call_id != NEW_MESSAGE and isinstance(call_id, str) and isinstance(change, Mapping)
    ]


def _fold_call(
    connection: Connection, place: Place, call_id: str, change: Mapping[Any, Any], *, is_whole: bool
) -> None:
    row = connection.execute(
        "SELECT record FROM call_log WHERE thread_id = ? AND call_id = ?", (place.thread_id, call_id)
    ).fetchone()
    old: dict[str, Any] = load_json(row[0], dict) if row and not is_whole else {}
    record = {**old, **change}
    if not {"tool_name", "status"} <= record.keys() or _attempt(record) < _attempt(old):
        return
    result = record.get("result")
    if isinstance(result, str) and len(result) >= _LONG_RESULT:
        # The journal holds a long result word for word; readers take it from there.
        key = (place.thread_id, storable(str(record.get("call_id"))), storable(result))
        if connection.execute(_IN_JOURNAL, key).fetchone() is not None:
            del record["result"]
    values = {
        **place._asdict(),
        "call_id": call_id,
        "tool_name": storable(str(record["tool_name"])),
        "status": storable(str(record["status"])),
        "risk": storable(str(record.get("risk") or "")),
        "record": json_text(record),
    }
    connection.execute(_UPDATE_CALL if row else _INSERT_CALL, values)


def _attempt(record: Mapping[str, Any]) -> int:
    attempt = record.get("attempt", 1 if record else 0)
    return attempt if isinstance(attempt, int) else 0


_THREAD_TABLES = [
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
    "tasks",
]


def delete_thread_rows(connection: Connection, thread_id: str) -> None:
    """Delete every row of a thread, facts included. Its lease stays: a process may still hold the lock."""
    for table in _THREAD_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))  # noqa: S608 - names only


def delete_threads(connection: Connection, thread_ids: Iterable[str]) -> None:
    """Delete threads with the permissions saved for them alone and their messages in the search index.

    Within the transaction of a caller who holds the locks of them all.
    """
    for thread_id in thread_ids:
        delete_thread_rows(connection, thread_id)
        connection.execute("DELETE FROM grants WHERE scope = 'thread' AND thread_id = ?", (thread_id,))
        connection.execute("DELETE FROM leases WHERE thread_id = ?", (thread_id,))
        update_search_index(connection, thread_id)
