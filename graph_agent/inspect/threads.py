"""Threads in short, with what they wait for; and the conversation of a thread from its append-only transcript."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from graph_agent.inspect.calls import Leases, ThreadStatus, read_leases, thread_status, view_calls
from graph_agent.inspect.state import CheckpointState, read_state
from graph_agent.ports.checkpoint_values import is_message, role_of
from graph_agent.ports.read_store import Lease, ReadStore, ThreadRow, TranscriptEntry

__all__ = [
    "RecentMessages",
    "ThreadSummary",
    "most_urgent",
    "read_messages",
    "read_recent",
    "read_threads",
    "state_messages",
]


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
    """Calls that need an answer nobody has given yet, those of its sub-agents among them."""
    interrupted_calls: int
    """Calls that need a recovery decision nobody has made yet."""
    answered_calls: int
    """Calls whose question has an answer that the thread has not applied yet."""
    holder: Lease | None
    """The living process that holds the thread."""
    last_lease: Lease | None
    """The last process that held the thread, dead or alive."""
    usage: dict[str, Any] | None = None
    """What its requests used, at its head; None where that was not noted."""


def read_threads(store: ReadStore, family_of: str | None = None) -> list[ThreadSummary]:
    """Every thread, or one and all sub-agents below it, newest first; each with what its sub-agents wait for."""
    leases = read_leases(store)
    threads = [_summary(row, leases) for row in store.threads(family_of)]
    children: dict[str, list[ThreadSummary]] = {}
    for thread in threads:
        if thread.parent_thread is not None and thread.parent_call is not None:
            children.setdefault(thread.parent_thread, []).append(thread)
    return [_with_children(thread, children) for thread in threads]


def most_urgent(statuses: Iterable[ThreadStatus]) -> ThreadStatus:
    """The status that takes precedence."""
    return min(statuses, key=get_args(ThreadStatus).index)


def _summary(row: ThreadRow, leases: Leases) -> ThreadSummary:
    thread_id = row.columns["thread_id"]
    is_held = thread_id in leases.held
    views = list(view_calls(row.open_calls, lambda _: is_held))
    lease = leases.by_thread.get(thread_id)
    return ThreadSummary(
        **row.columns,
        queued_messages=row.queued_messages,
        status=thread_status(views, is_idle=row.is_idle, is_held=is_held, is_asking=row.is_asking),
        pending_approvals=sum(view.is_waiting for view in views),
        interrupted_calls=sum(view.is_interrupted for view in views),
        answered_calls=sum(view.is_answered for view in views),
        holder=lease if is_held else None,
        last_lease=lease,
        usage=row.usage,
    )


def _with_children(thread: ThreadSummary, children: dict[str, list[ThreadSummary]]) -> ThreadSummary:
    """The thread with what its sub-agents wait for: only through it do they continue."""
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


def read_messages(store: ReadStore, thread_id: str, *, all_branches: bool = False) -> Iterator[TranscriptEntry]:
    """The conversation at the newest checkpoint, then messages that were received but not processed yet."""
    yield from store.messages(thread_id, all_branches=all_branches)
    yield from _incoming(store, thread_id)


@dataclass(frozen=True, slots=True)
class RecentMessages:
    """The end of a conversation."""

    entries: list[TranscriptEntry]
    earlier: int
    """How many messages come before it."""


def read_recent(store: ReadStore, thread_id: str, most: int, *, turns: int | None = None) -> RecentMessages:
    """The newest messages of the head's conversation, in order: at most so many, or of at most so many turns.

    After them come messages it has received but not processed yet. However long the conversation is, only these
    are read; without the system message where turns are asked for.
    """
    entries, total = store.newest_messages(thread_id, most, with_system=turns is None)
    starts = [number for number, entry in enumerate(entries, 1) if entry.role in ("user", "human")]
    if turns is not None and len(starts) >= turns:
        entries = entries[: starts[turns - 1]]
    incoming = [entry for entry in _incoming(store, thread_id) if turns is None or entry.role != "system"]
    return RecentMessages([*entries[::-1], *incoming], total - len(entries))


def state_messages(state: CheckpointState) -> list[TranscriptEntry]:
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


def _incoming(store: ReadStore, thread_id: str) -> Sequence[TranscriptEntry]:
    """Messages on disk that no step has processed, because the process died in between; the next run will."""
    head = store.head(thread_id)
    if head is None or head.checkpoint_id is None or head.next_nodes != ["__start__"]:
        return []
    state = read_state(store, thread_id, head.checkpoint_id, is_head=True)
    given = state.tasks[0].input if state.tasks else None
    sent = replace(state, values=given if isinstance(given, dict) else {})
    last = store.last_seq(thread_id)
    return [replace(entry, seq=last + entry.seq, branch=head.branch) for entry in state_messages(sent)]
