"""Threads in short, with what they wait for; the conversation of one, from its transcript; the search in all.

The text that is searched for is data: it has no operators. The search index narrows the choice where it can, and
every message is then examined itself; what the index does not hold yet is scanned. The system message and summaries
are left out: the messages that a summary stands for are found themselves.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from graph_agent.inspect.calls import Leases, ThreadStatus, read_leases, thread_status, view_calls
from graph_agent.ports.checkpoint_values import is_message, role_of
from graph_agent.ports.read_store import Lease, ReadStore, ThreadRow, TranscriptEntry
from graph_agent.ports.stored_text import LONGEST_WORD, searchable

if TYPE_CHECKING:
    from graph_agent.inspect.state import CheckpointState

__all__ = [
    "RecentMessages",
    "SearchHit",
    "ThreadSummary",
    "most_urgent",
    "read_messages",
    "read_recent",
    "read_threads",
    "search_messages",
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

    @property
    def is_abandoned(self) -> bool:
        """Whether it has no message and nobody has it open: a chat that was killed before the first one."""
        has_content = self.checkpoint_id or self.turns or self.queued_messages or self.parent_thread or self.title
        return not has_content and self.status == "idle" and self.holder is None


def read_threads(store: ReadStore, families: Sequence[str] | None = None) -> list[ThreadSummary]:
    """Every thread, or these threads and all sub-agents below them, newest first.

    A summary includes what the sub-agents of its thread wait for.
    """
    leases = read_leases(store, families)
    threads = [_summary(row, leases) for row in store.threads(families)]
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
    # Its first message is stored, and nothing else yet.
    is_starting = row.columns["checkpoint_id"] is None and row.queued_messages > 0
    is_idle = row.is_idle and not is_starting
    return ThreadSummary(
        **row.columns,
        queued_messages=row.queued_messages,
        status=thread_status(views, is_idle=is_idle, is_held=is_held, is_asking=row.is_asking),
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


def state_messages(state: "CheckpointState") -> list[TranscriptEntry]:
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
    from graph_agent.inspect.state import read_state  # noqa: PLC0415 - lists do without

    state = read_state(store, thread_id, head.checkpoint_id, is_head=True)
    given = state.tasks[0].input if state.tasks else None
    sent = replace(state, values=given if isinstance(given, dict) else {})
    last = store.last_seq(thread_id)
    return [replace(entry, seq=last + entry.seq, branch=head.branch) for entry in state_messages(sent)]


_BEFORE, _AFTER = 48, 112
"""Characters shown before and after the first word."""
_MOST_TERMS = 200


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One message that was found."""

    thread_id: str
    title: str
    seq: int
    """Its number in the thread, over all branches."""
    message_id: str
    role: str
    at: str
    checkpoint_id: str | None
    """Where to resume the thread: the first checkpoint that exists and is not older than the message."""
    snippet: str
    """A piece of it on one line."""
    marks: tuple[tuple[int, int], ...]
    """Begin and end of each searched word in the snippet."""


def search_messages(store: ReadStore, text: str) -> Iterator[SearchHit]:
    """The messages in which every word of the text occurs, whatever their case.

    The index finds a word where one begins; only if it finds nothing, words are searched within words, too.
    """
    words = text.split()
    if not words:
        return
    patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
    terms = _index_terms(words)
    found = False
    for thread_id, seq in store.search_index(terms) if terms else ():
        for hit in _examined(store, thread_id, seq, patterns):
            found = True
            yield hit
    if found:
        return
    for thread_id, seq in store.search_text(words):
        yield from _examined(store, thread_id, seq, patterns)


def _index_terms(words: Sequence[str]) -> str:
    """A query to the index that every message with these words matches; empty where the index cannot help."""
    parts = [part for word in words for part in re.findall(r"[A-Za-z0-9]+", word)]
    return " AND ".join(f'"{part[:LONGEST_WORD]}"*' for part in parts[:_MOST_TERMS])


def _examined(
    store: ReadStore, thread_id: str, seq: int, patterns: Sequence[re.Pattern[str]]
) -> Iterator[SearchHit]:
    message = store.message(thread_id, seq)
    if message is None:
        return
    role, body, message_id, at, title, checkpoint_id = message
    text = searchable(body)
    matches = [pattern.search(text) for pattern in patterns]
    first = next((found.start() for found in matches if found), 0)
    if all(matches):
        snippet, marks = _snippet(text, first, patterns)
        yield SearchHit(thread_id, title, seq, message_id, role, at, checkpoint_id, snippet, marks)


def _snippet(text: str, start: int, patterns: Sequence[re.Pattern[str]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    begin, end = max(start - _BEFORE, 0), start + _AFTER
    piece = " ".join(text[begin:end].split())
    shown = f"{'…' if begin else ''}{piece}{'…' if end < len(text) else ''}"
    spans = sorted(found.span() for pattern in patterns for found in pattern.finditer(shown))
    marks: list[tuple[int, int]] = []
    for first, last in spans:
        if marks and first <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(last, marks[-1][1]))
        else:
            marks.append((first, last))
    return shown, tuple(marks)
