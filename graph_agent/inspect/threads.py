"""Threads in short: one line each, with what they wait for. One statement, however many threads there are.

The conversation of a thread, as the append-only transcript holds it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from graph_agent.inspect.calls import (
    OPEN_BY_THREAD,
    WORKS_FOR_NOBODY,
    ThreadStatus,
    load_json,
    thread_status,
    views_of,
)
from graph_agent.inspect.checkpoint_values import is_message, role_of
from graph_agent.inspect.connection import Lease, Leases, ReadOnlyDatabase
from graph_agent.inspect.state import CheckpointState, read_state

__all__ = [
    "FAMILY",
    "RecentMessages",
    "ThreadSummary",
    "TranscriptEntry",
    "entries_of",
    "most_urgent",
    "owner_of",
    "read_recent",
    "read_threads",
    "read_transcript",
    "stream_conversation",
    "stream_transcript",
    "with_sub_agents",
]

FAMILY = """t.thread_id IN (WITH RECURSIVE family(id) AS (SELECT ? UNION SELECT c.thread_id FROM threads c
    JOIN family ON c.parent_thread = family.id WHERE c.parent_call IS NOT NULL) SELECT id FROM family)"""
"""The condition on `t` for one thread and all sub-agents below it."""

_STORED = (
    "thread_id",
    "title",
    "workspace",
    "model",
    "mode",
    "created_at",
    "updated_at",
    "checkpoint_id",
    "turns",
    "outcome",
    "parent_thread",
    "parent_call",
)
_SELECT = f"""WITH open AS MATERIALIZED ({OPEN_BY_THREAD})
    SELECT {", ".join(f"t.{name}" for name in _STORED)},
    (SELECT count(*) FROM inbox i WHERE i.thread_id = t.thread_id AND i.taken_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM transcript m WHERE m.thread_id = i.thread_id AND m.message_id = 'inbox-' || i.id)),
    t.next_nodes = '[]' OR {WORKS_FOR_NOBODY.format(of="t")},
    CASE WHEN t.next_nodes = '[]' OR open.calls IS NOT NULL THEN 0 ELSE EXISTS (
        SELECT 1 FROM writes w WHERE w.thread_id = t.thread_id AND w.checkpoint_ns = ''
        AND w.checkpoint_id = t.checkpoint_id AND w.channel = '__interrupt__') END, open.calls, t.usage
    FROM threads t LEFT JOIN open USING (thread_id)"""  # noqa: S608 - names of our own columns

_OWNER = """WITH RECURSIVE line(id, depth) AS (SELECT ?, 0 UNION SELECT t.parent_thread, depth + 1 FROM threads t
    JOIN line ON t.thread_id = line.id
    WHERE t.parent_call IS NOT NULL AND t.parent_thread IS NOT NULL AND depth < 100)
    SELECT id FROM line WHERE id IN (SELECT thread_id FROM threads) ORDER BY depth DESC LIMIT 1"""

_NOTES_USAGE = 11
"""The schema version from which on the list notes what threads used."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread."""

    thread_id: str
    title: str
    workspace: str
    model: str
    mode: str
    created_at: str
    updated_at: str
    checkpoint_id: str | None
    """The head."""
    turns: int
    outcome: str
    """How the last turn ended: done, limit, stopped; empty while one is under way."""
    parent_thread: str | None
    """The thread it was forked from, or whose sub-agent it is."""
    parent_call: str | None
    """The call of the parent whose sub-agent works here; None for a thread of the user's own."""
    queued_messages: int
    status: ThreadStatus
    pending_approvals: int
    """Calls that wait for an answer nobody has given yet, those of its sub-agents among them."""
    interrupted_calls: int
    """Calls that wait for a recovery decision nobody has made yet."""
    answered_calls: int
    """Calls whose question has an answer that the thread has not taken in yet."""
    holder: Lease | None
    """The living process that holds the thread."""
    last_lease: Lease | None
    """The last process that held the thread, dead or alive."""
    usage: dict[str, Any] | None = None
    """What its requests used, at its head; None where that was not noted."""


def read_threads(
    database: ReadOnlyDatabase, leases: Leases, where: str = "1", parameters: Sequence[Any] = ()
) -> list[ThreadSummary]:
    """The threads that fulfil a condition on `t`, newest first."""
    select = _SELECT if database.version >= _NOTES_USAGE else _SELECT.replace("t.usage", "NULL")
    rows = database.rows(f"{select} WHERE {where} ORDER BY t.updated_at DESC, t.thread_id", parameters)
    return [_summary(database, leases, row) for row in rows]


def owner_of(database: ReadOnlyDatabase, thread_id: str) -> str:
    """The thread that goes on with this one: itself, or of a sub-agent the one it works for in the end."""
    found = database.rows(_OWNER, (thread_id,))
    return str(found[0][0]) if found else thread_id


def with_sub_agents(threads: Sequence[ThreadSummary]) -> list[ThreadSummary]:
    """The same threads, in each also what its sub-agents wait for: only through it do they go on."""
    children: dict[str, list[ThreadSummary]] = {}
    for thread in threads:
        if thread.parent_thread is not None and thread.parent_call is not None:
            children.setdefault(thread.parent_thread, []).append(thread)
    return [_with_children(thread, children) for thread in threads]


def _with_children(thread: ThreadSummary, children: dict[str, list[ThreadSummary]]) -> ThreadSummary:
    if thread.status == "idle" or thread.thread_id not in children:
        return thread
    below = [_with_children(child, children) for child in children[thread.thread_id]]
    return replace(
        thread,
        status=most_urgent((thread.status, *(child.status for child in below))),
        pending_approvals=thread.pending_approvals + sum(child.pending_approvals for child in below),
        interrupted_calls=thread.interrupted_calls + sum(child.interrupted_calls for child in below),
        answered_calls=thread.answered_calls + sum(child.answered_calls for child in below),
    )


def most_urgent(statuses: Iterable[ThreadStatus]) -> ThreadStatus:
    """The one of them that says most of what is to be done."""
    return min(statuses, key=get_args(ThreadStatus).index)


def _summary(database: ReadOnlyDatabase, leases: Leases, row: tuple[Any, ...]) -> ThreadSummary:
    stored = dict(zip(_STORED, row, strict=False))
    thread_id = stored["thread_id"]
    queued, is_idle, asks, calls, usage = row[len(_STORED) :]
    is_held = thread_id in leases.held
    views = [] if is_idle or not calls else views_of(database, thread_id, calls, is_held=is_held, is_idle=False)
    lease = leases.leases.get(thread_id)
    return ThreadSummary(
        **stored,
        queued_messages=queued,
        status=thread_status(views, is_idle=bool(is_idle), is_held=is_held, asks=bool(asks)),
        pending_approvals=sum(view.is_waiting for view in views),
        interrupted_calls=sum(view.is_interrupted for view in views),
        answered_calls=sum(view.is_answered for view in views),
        holder=lease if is_held else None,
        last_lease=lease,
        usage=None if usage is None else load_json(usage),
    )


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
class RecentMessages:
    """The end of a conversation."""

    entries: list[TranscriptEntry]
    earlier: int
    """How many messages stand before it."""


def read_recent(
    database: ReadOnlyDatabase, thread_id: str, most: int, *, turns: int | None = None
) -> RecentMessages:
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
    return RecentMessages([*entries[::-1], *entering], total - len(entries))


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
