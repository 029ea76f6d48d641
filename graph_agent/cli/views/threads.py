"""`threads list` and `threads show`: threads as a table, one thread with its calls and conversation."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graph_agent.calls import FINAL
from graph_agent.cli.escape import escape
from graph_agent.cli.views.ages import age
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.counting import held_back
from graph_agent.cli.views.messages import message_lines, tokens_of
from graph_agent.cli.views.place import reading
from graph_agent.cli.views.screen import local_time, print_json, print_json_lists, print_lines
from graph_agent.cli.views.table import labelled, short_ids, table
from graph_agent.cli.views.usage import usage_text
from graph_agent.errors import NothingYet
from graph_agent.inspect import CallView, Reader, ThreadSummary, TranscriptEntry
from graph_agent.ports.spending import told_usage

__all__ = ["ThreadView", "list_threads", "show_thread", "thread_json"]

_LAST_MESSAGES = 20


def list_threads(database: Path, *, as_json: bool) -> None:
    """Print every thread, newest first."""
    try:
        with reading(database) as reader:
            threads = reader.threads()
    except NothingYet:
        threads = []
    if as_json:
        print_json({"threads": [thread_json(thread) for thread in threads]})
    elif threads:
        print_lines(_thread_table(threads))
    else:
        print_lines(["No threads yet. `graph-agent chat` starts the first."])


@dataclass(frozen=True, slots=True)
class ThreadView:
    """How much of a thread is shown, and in which form."""

    as_json: bool = False
    full: bool = False
    """Every message, whole."""
    all_branches: bool = False
    """Messages that the thread came away from, too."""


def show_thread(database: Path, text: str, workspace: str | None, view: ThreadView) -> None:
    """Print one thread."""
    with reading(database) as reader:
        target = reader.resolve(text, workspace)
        thread = reader.thread(target.thread_id)
        if view.as_json:
            _print_as_json(reader, thread, view)
        else:
            print_lines(_thread_lines(reader, thread, view))


def _print_as_json(reader: Reader, thread: ThreadSummary, view: ThreadView) -> None:
    def transcript() -> Iterator[TranscriptEntry]:
        return reader.each_message(thread.thread_id, all_branches=view.all_branches)

    facts = {"add_dirs": list(reader.roots(thread.thread_id)), "tokens": tokens_of(transcript())}
    calls = (call_json(call) for call in reader.each_call(thread.thread_id))
    print_json_lists(
        {**thread_json(thread), **facts}, {"calls": calls, "transcript": (asdict(entry) for entry in transcript())}
    )


def thread_json(thread: ThreadSummary) -> dict[str, Any]:
    """A thread in the shape others script against."""
    facts = asdict(thread)
    holder = facts.pop("holder")
    facts.pop("last_lease")
    facts["usage"] = told_usage(thread.usage) if thread.usage is not None else None
    first = ("thread_id", "title", "workspace", "status", "updated_at", "checkpoint_id", "turns")
    ordered = {
        name: facts.pop(name) for name in (*first, "pending_approvals", "interrupted_calls", "answered_calls")
    }
    shown = holder and {name: holder[name] for name in ("pid", "host", "since")}
    return {**ordered, **facts, "held_by": shown}


def _thread_table(threads: list[ThreadSummary]) -> Iterator[str]:
    short = short_ids(thread.thread_id for thread in threads)
    has_places = len({thread.workspace for thread in threads}) > 1
    rows = [
        (
            short(thread.thread_id),
            thread.status,
            age(thread.updated_at),
            str(thread.turns),
            _open_of(thread),
            *((thread.workspace,) if has_places else ()),
            f"{'  ' * (depth - 1)}└ {thread.title}" if depth else thread.title,
        )
        for depth, thread in _under_parents(threads)
    ]
    place = ("WORKSPACE",) if has_places else ()
    return table(("THREAD", "STATUS", "UPDATED", "TURNS", "OPEN", *place, "TITLE"), rows, place="WORKSPACE")


def _under_parents(threads: list[ThreadSummary]) -> Iterator[tuple[int, ThreadSummary]]:
    """The threads as they are, but each sub-agent below its parent, with its depth."""
    known = {thread.thread_id for thread in threads}
    tops: list[ThreadSummary] = []
    children: dict[str, list[ThreadSummary]] = {}
    for thread in threads:
        parent = thread.parent_thread if thread.parent_call is not None else None
        (children.setdefault(parent, []) if parent in known and parent is not None else tops).append(thread)
    left = [(0, thread) for thread in reversed(tops)]
    while left:
        depth, thread = left.pop()
        yield depth, thread
        left.extend((depth + 1, child) for child in reversed(children.get(thread.thread_id, [])))


def _open_of(thread: ThreadSummary) -> str:
    counts = (
        (thread.pending_approvals, "to approve"),
        (thread.interrupted_calls, "interrupted"),
        (thread.answered_calls, "answered"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "-"


def _thread_lines(reader: Reader, thread: ThreadSummary, view: ThreadView) -> Iterator[str]:
    statuses: Counter[str] = Counter()
    open_calls = []
    for call in reader.each_call(thread.thread_id, brief=True):
        statuses[call.record["status"]] += 1
        if _is_open(call):
            open_calls.append(call)
    usage = thread.usage
    if not usage:
        # Of threads from before it was noted it is counted.
        told = tokens_of(reader.each_message(thread.thread_id, all_branches=view.all_branches))
        usage = {**told, "unpriced_requests": 1}
    yield from labelled(
        {
            "thread": thread.thread_id,
            "title": thread.title,
            "status": thread.status,
            "held by": _lease_text(thread),
            "workspace": thread.workspace,
            "also in": ", ".join(reader.roots(thread.thread_id)),
            "model": thread.model,
            "mode": thread.mode,
            "created": local_time(thread.created_at),
            "updated": local_time(thread.updated_at),
            "checkpoint": thread.checkpoint_id or "",
            "turns": f"{thread.turns}{f', last one ended: {thread.outcome}' if thread.outcome else ''}",
            "queued": str(thread.queued_messages or ""),
            "forked from": thread.parent_thread or "" if thread.parent_call is None else "",
            "sub-agent of": f"{thread.parent_thread}, call {thread.parent_call}" if thread.parent_call else "",
            "tokens": usage_text(told_usage(usage)),
            "calls": ", ".join(f"{count} {status}" for status, count in statuses.items()),
        }
    )
    if open_calls:
        yield ""
        yield from call_table(open_calls, reader.shared_call_ids())
    yield from _messages(reader, thread.thread_id, view)


def _messages(reader: Reader, thread_id: str, view: ThreadView) -> Iterator[str]:
    shown, left_out = _said(reader, thread_id, view)
    is_first = True
    for entry in shown:
        if is_first:
            yield ""
            if left_out:
                yield held_back(left_out, "earlier message")
            is_first = False
        yield from message_lines(entry.role, entry.body, full=view.full)


def _said(reader: Reader, thread_id: str, view: ThreadView) -> tuple[Iterable[TranscriptEntry], int]:
    """What is shown of the conversation, and how many messages stand before it. No more is read: it may be long."""
    if view.full:
        return reader.each_message(thread_id, all_branches=view.all_branches), 0
    if view.all_branches:
        everything = reader.transcript(thread_id, all_branches=True)
        return everything[-_LAST_MESSAGES:], max(len(everything) - _LAST_MESSAGES, 0)
    recent = reader.recent(thread_id, _LAST_MESSAGES)
    return recent.entries, recent.earlier


def _is_open(view: CallView) -> bool:
    return view.record["status"] not in FINAL and not view.record.get("left_behind")


def _lease_text(thread: ThreadSummary) -> str:
    if thread.holder is not None:
        return f"process {thread.holder.pid} on {thread.holder.host} since {local_time(thread.holder.since)}"
    last = thread.last_lease
    if last is None or last.ended_at is not None:
        return ""
    return f"nobody; process {last.pid} on {escape(last.host)} died holding it"
