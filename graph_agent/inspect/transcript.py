"""The conversation of a thread, as the append-only transcript holds it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.ledger import load_json
from graph_agent.inspect.messages import is_message, role_of
from graph_agent.inspect.state import CheckpointState, read_state

__all__ = [
    "Recent",
    "TranscriptEntry",
    "entries_of",
    "read_recent",
    "read_transcript",
    "stream_conversation",
    "stream_transcript",
]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message."""

    seq: int
    """1, 2, 3 … per thread over all branches."""
    branch: int
    """0, and 1, 2, 3 … each time an older checkpoint was taken up again."""
    message_id: str
    role: str
    """system, user, assistant, tool."""
    body: dict[str, Any]
    """content, and where they apply: tool_calls, tool_call_id, status, usage."""
    checkpoint_id: str
    """First checkpoint whose state holds the message."""
    at: str


_LINE = """
WITH RECURSIVE line (branch, upto) AS (
    SELECT branch, 9223372036854775807 FROM threads WHERE thread_id = ?1
    UNION ALL
    SELECT b.parent_branch, min(b.from_seq, line.upto) FROM line JOIN branches b
    ON b.thread_id = ?1 AND b.branch = line.branch
)"""
"""The head's branch and those it came from, each with the last row that shows."""
_SHOWN = "EXISTS (SELECT 1 FROM line WHERE line.branch = t.branch AND t.seq <= line.upto)"


def read_transcript(database: ReadOnlyDatabase, thread_id: str) -> list[TranscriptEntry]:
    """The conversation that the thread's head stands at the end of."""
    return list(stream_transcript(database, thread_id))


def stream_transcript(
    database: ReadOnlyDatabase, thread_id: str, *, all_branches: bool = False
) -> Iterator[TranscriptEntry]:
    """The same message by message; on request also what the thread has come away from."""
    rows = database.stream(
        f"""{_LINE} SELECT seq, branch, message_id, role, body, checkpoint_id, at FROM transcript t
        WHERE thread_id = ?1 AND {"1" if all_branches else _SHOWN} ORDER BY seq""",  # noqa: S608 - nothing from outside
        (thread_id,),
    )
    for seq, branch, message_id, role, body, checkpoint_id, at in rows:
        yield TranscriptEntry(seq, branch, message_id, role, load_json(body), checkpoint_id, at)


def stream_conversation(
    database: ReadOnlyDatabase, thread_id: str, *, all_branches: bool = False
) -> Iterator[TranscriptEntry]:
    """The same, and behind it what the thread was sent and has yet to take in."""
    yield from stream_transcript(database, thread_id, all_branches=all_branches)
    yield from _entering(database, thread_id)


def _entering(database: ReadOnlyDatabase, thread_id: str) -> list[TranscriptEntry]:
    """Messages on disk that no step has taken in, because the process died in between: the next life does."""
    heads = database.rows(
        """SELECT checkpoint_id, branch, (SELECT coalesce(max(seq), 0) FROM transcript WHERE thread_id = ?1)
        FROM threads WHERE thread_id = ?1 AND next_nodes = '["__start__"]' AND checkpoint_id IS NOT NULL""",
        (thread_id,),
    )
    found: list[TranscriptEntry] = []
    for checkpoint_id, branch, last in heads:
        state = read_state(database, thread_id, checkpoint_id, is_head=True)
        given = state.tasks[0].input if state.tasks else None
        sent = replace(state, values=given if isinstance(given, dict) else {})
        found = [replace(entry, seq=last + entry.seq, branch=branch) for entry in entries_of(sent)]
    return found


@dataclass(frozen=True, slots=True)
class Recent:
    """The end of a conversation."""

    entries: list[TranscriptEntry]
    earlier: int
    """How many messages stand before it."""


def read_recent(database: ReadOnlyDatabase, thread_id: str, most: int, *, turns: int | None = None) -> Recent:
    """The newest messages of the head's conversation, in order: so many at most, or of so many turns at most.

    Behind them stands what the thread was sent and has yet to take in.
    However long the conversation is, only these are read; without the system's where turns are asked for.
    """
    kept = "role <> 'system'" if turns is not None else "1"
    where = f"FROM transcript t WHERE thread_id = ?1 AND {_SHOWN} AND {kept}"
    rows = database.rows(
        f"""{_LINE} SELECT seq, branch, message_id, role, body, checkpoint_id, at {where}
        ORDER BY seq DESC LIMIT ?2""",
        (thread_id, most),
    )
    entries = [
        TranscriptEntry(seq, branch, message_id, role, load_json(body), checkpoint_id, at)
        for seq, branch, message_id, role, body, checkpoint_id, at in rows
    ]
    starts = [number for number, entry in enumerate(entries, 1) if entry.role in ("user", "human")]
    if turns is not None and len(starts) >= turns:
        entries = entries[: starts[turns - 1]]
    [(total,)] = database.rows(f"{_LINE} SELECT count(*) {where}", (thread_id,))
    entering = [entry for entry in _entering(database, thread_id) if turns is None or entry.role != "system"]
    return Recent([*entries[::-1], *entering], total - len(entries))


def entries_of(state: CheckpointState) -> list[TranscriptEntry]:
    """The conversation as a state holds it, where there is no transcript beside it."""
    messages = state.values.get("messages")
    found = [message for message in messages if is_message(message)] if isinstance(messages, list) else []
    return [
        TranscriptEntry(
            number,
            0,
            str(message.get("id") or ""),
            role_of(message),
            {**message, "usage": message.get("usage_metadata")},
            state.checkpoint_id,
            state.created_at,
        )
        for number, message in enumerate(found, 1)
    ]
