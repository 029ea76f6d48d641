"""Threads in short: one line each, with what they wait for. One statement, however many threads there are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.effective import ThreadStatus, thread_status
from graph_agent.inspect.holder import Lease
from graph_agent.inspect.ledger import OPEN_BY_THREAD, WORKS_FOR_NOBODY, load_json, views_of
from graph_agent.inspect.lives import Lives

__all__ = ["FAMILY", "ThreadSummary", "most_urgent", "owner_of", "read_threads", "with_sub_agents"]

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
    database: ReadOnlyDatabase, lives: Lives, where: str = "1", parameters: Sequence[Any] = ()
) -> list[ThreadSummary]:
    """The threads that fulfil a condition on `t`, newest first."""
    select = _SELECT if database.version >= _NOTES_USAGE else _SELECT.replace("t.usage", "NULL")
    rows = database.rows(f"{select} WHERE {where} ORDER BY t.updated_at DESC, t.thread_id", parameters)
    return [_summary(database, lives, row) for row in rows]


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
    if thread.status == "at_rest" or thread.thread_id not in children:
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


def _summary(database: ReadOnlyDatabase, lives: Lives, row: tuple[Any, ...]) -> ThreadSummary:
    stored = dict(zip(_STORED, row, strict=False))
    thread_id = stored["thread_id"]
    queued, is_at_rest, asks, calls, usage = row[len(_STORED) :]
    is_held = thread_id in lives.held
    views = (
        [] if is_at_rest or not calls else views_of(database, thread_id, calls, is_held=is_held, is_at_rest=False)
    )
    lease = lives.leases.get(thread_id)
    return ThreadSummary(
        **stored,
        queued_messages=queued,
        status=thread_status(views, is_at_rest=bool(is_at_rest), is_held=is_held, asks=bool(asks)),
        pending_approvals=sum(view.is_waiting for view in views),
        interrupted_calls=sum(view.is_interrupted for view in views),
        answered_calls=sum(view.is_answered for view in views),
        holder=lease if is_held else None,
        last_lease=lease,
        usage=None if usage is None else load_json(usage),
    )
