"""`threads list` and `threads show`: threads as a table, one thread with its calls and conversation.

`threads delete` and `threads rename`: what is asked before, and what came of it.

`threads search`: the messages of all threads that hold the words, newest first, with what was found marked.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.calls import FINAL
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.format import (
    format_age,
    format_message,
    format_omitted,
    format_usage,
    open_reader,
    sum_tokens,
)
from graph_agent.cli.views.table import (
    colorize,
    format_fields,
    format_table,
    format_time,
    id_shortener,
    line_width,
    print_json,
    print_json_lists,
    print_lines,
    truncate,
)
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.inspect import CallView, Reader, SearchHit, Target, ThreadSummary, TranscriptEntry
from graph_agent.ports.usage import told_usage

if TYPE_CHECKING:
    from graph_agent.app.threads import Deleted


__all__ = [
    "ThreadView",
    "confirm_delete",
    "list_threads",
    "print_deleted",
    "print_renamed",
    "search_threads",
    "show_thread",
    "thread_json",
]

_LAST_MESSAGES = 20


def list_threads(database: Path, *, as_json: bool) -> None:
    """Print every thread, newest first."""
    try:
        with open_reader(database) as reader:
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
    with open_reader(database) as reader:
        target = reader.resolve(text, workspace)
        thread = reader.thread(target.thread_id)
        if view.as_json:
            _print_as_json(reader, thread, view)
        else:
            print_lines(_thread_lines(reader, thread, view))


def _print_as_json(reader: Reader, thread: ThreadSummary, view: ThreadView) -> None:
    def transcript() -> Iterator[TranscriptEntry]:
        return reader.iter_messages(thread.thread_id, all_branches=view.all_branches)

    facts = {"add_dirs": list(reader.roots(thread.thread_id)), "tokens": sum_tokens(transcript())}
    calls = (call_json(call) for call in reader.iter_calls(thread.thread_id))
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
    short = id_shortener(thread.thread_id for thread in threads)
    has_places = len({thread.workspace for thread in threads}) > 1
    rows = [
        (
            short(thread.thread_id),
            thread.status,
            format_age(thread.updated_at),
            str(thread.turns),
            _open_of(thread),
            *((thread.workspace,) if has_places else ()),
            f"{'  ' * (depth - 1)}└ {thread.title}" if depth else thread.title,
        )
        for depth, thread in _under_parents(threads)
    ]
    place = ("WORKSPACE",) if has_places else ()
    return format_table(("THREAD", "STATUS", "UPDATED", "TURNS", "OPEN", *place, "TITLE"), rows, place="WORKSPACE")


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
    for call in reader.iter_calls(thread.thread_id, brief=True):
        statuses[call.record["status"]] += 1
        if _is_open(call):
            open_calls.append(call)
    usage = thread.usage
    if not usage:
        # Of threads from before it was noted it is counted.
        told = sum_tokens(reader.iter_messages(thread.thread_id, all_branches=view.all_branches))
        usage = {**told, "unpriced_requests": 1}
    yield from format_fields(
        {
            "thread": thread.thread_id,
            "title": thread.title,
            "status": thread.status,
            "held by": _lease_text(thread),
            "workspace": thread.workspace,
            "also in": ", ".join(reader.roots(thread.thread_id)),
            "model": thread.model,
            "mode": thread.mode,
            "created": format_time(thread.created_at),
            "updated": format_time(thread.updated_at),
            "checkpoint": thread.checkpoint_id or "",
            "turns": f"{thread.turns}{f', last one ended: {thread.outcome}' if thread.outcome else ''}",
            "queued": str(thread.queued_messages or ""),
            "forked from": thread.parent_thread or "" if thread.parent_call is None else "",
            "sub-agent of": f"{thread.parent_thread}, call {thread.parent_call}" if thread.parent_call else "",
            "tokens": format_usage(told_usage(usage)),
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
                yield format_omitted(left_out, "earlier message")
            is_first = False
        yield from format_message(entry.role, entry.body, full=view.full)


def _said(reader: Reader, thread_id: str, view: ThreadView) -> tuple[Iterable[TranscriptEntry], int]:
    """What is shown of the conversation, and how many messages stand before it. No more is read: it may be long."""
    if view.full:
        return reader.iter_messages(thread_id, all_branches=view.all_branches), 0
    if view.all_branches:
        everything = reader.transcript(thread_id, all_branches=True)
        return everything[-_LAST_MESSAGES:], max(len(everything) - _LAST_MESSAGES, 0)
    recent = reader.recent(thread_id, _LAST_MESSAGES)
    return recent.entries, recent.earlier


def _is_open(view: CallView) -> bool:
    return view.record["status"] not in FINAL and not view.record.get("abandoned")


def _lease_text(thread: ThreadSummary) -> str:
    if thread.holder is not None:
        return f"process {thread.holder.pid} on {thread.holder.host} since {format_time(thread.holder.since)}"
    last = thread.last_lease
    if last is None or last.ended_at is not None:
        return ""
    return f"nobody; process {last.pid} on {escape(last.host)} died holding it"


def confirm_delete(threads: Sequence["ThreadSummary"]) -> bool:
    """Show what would go and ask.

    Raises:
        UsageError: nobody is there to answer.
    """
    if not sys.stdin.isatty():
        raise UsageError("deleting cannot be undone, and nobody is here to ask; --yes does it without asking")
    open_calls = {thread.thread_id: thread.pending_approvals + thread.interrupted_calls for thread in threads}
    for thread in threads:
        count = open_calls[thread.thread_id]
        asking = f", {count} open question{'s' * (count != 1)}" if count else ""
        print_lines(
            [escape(f"{thread.thread_id}  {thread.turns} turn{'s' * (thread.turns != 1)}{asking}  {thread.title}")]
        )
    what = "this thread" if len(threads) == 1 else f"these {len(threads)} threads"
    sys.stdout.write(f"Delete {what}, with all that was said and recorded? It cannot be undone. [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_deleted(done: "Deleted", *, as_json: bool) -> None:
    """Tell what went."""
    if as_json:
        print_json({"deleted": [one.thread_id for one in done.threads], "collected": asdict(done.collected)})
    elif done.threads:
        print_lines(escape(f"deleted: {one.thread_id}  {one.title}") for one in done.threads)
    else:
        print_lines(["nothing was deleted"])


def print_renamed(thread_id: str, title: str, *, as_json: bool) -> None:
    """Tell what the thread is called now."""
    if as_json:
        print_json({"thread_id": thread_id, "title": title})
    else:
        print_lines([escape(f"{thread_id} is now called: {title}")])


def search_threads(database: Path, text: str, limit: int, *, as_json: bool) -> None:
    """Print what is found.

    Raises:
        UsageError: the text is blank.
    """
    if not text.strip():
        raise UsageError("the text to look for is blank; give one or more words that a message holds")
    try:
        with Reader.open(database) as reader:
            found = list(islice(reader.search(text), limit + 1))
            short = id_shortener(thread.thread_id for thread in reader.threads())
            places = [_place(reader, hit) for hit in found]
    except NothingYet:
        found, short, places = [], str, []
    hits, is_cut = found[:limit], len(found) > limit
    if as_json:
        print_json({"query": text, "hits": [_as_json(hit) for hit in hits], "more": is_cut})
    elif hits:
        told = zip(hits, places, strict=False)
        print_lines(line for hit, place in told for line in _lines(hit, short(hit.thread_id), place))
        if is_cut:
            print_lines([f"… and more; --limit {limit * 2} shows them"])
    else:
        print_lines([f"No message holds “{escape(text)}”."])


def _as_json(hit: SearchHit) -> dict[str, Any]:
    facts = asdict(hit)
    return {**facts, "marks": [list(mark) for mark in hit.marks]}


def _place(reader: Reader, hit: SearchHit) -> str:
    """What `resume` takes for it: a thread that was copied has its checkpoints under the same ids as the other."""
    checkpoint = Target("checkpoint", hit.thread_id, hit.checkpoint_id or "")
    try:
        is_enough = reader.resolve(checkpoint.id, kinds=("checkpoint",)) == checkpoint
    except UnknownId:
        is_enough = False
    return checkpoint.id if is_enough else str(checkpoint)


def _lines(hit: SearchHit, thread: str, resumed_at: str) -> Iterator[str]:
    room = line_width()
    place = f"{thread}  {format_time(hit.at)}  {hit.role}  {hit.title}"
    yield colorize(truncate(escape(place), room) if room else escape(place), "heading")
    yield f"  {_marked(hit)}"
    if hit.checkpoint_id:
        yield f"  graph-agent resume {escape(resumed_at)}"


def _marked(hit: SearchHit) -> str:
    shown, end = [], 0
    for first, last in hit.marks:
        shown += [escape(hit.snippet[end:first]), _mark(escape(hit.snippet[first:last]))]
        end = last
    return "".join([*shown, escape(hit.snippet[end:])])


def _mark(text: str) -> str:
    coloured = colorize(text, "found")
    return coloured if coloured != text else f"»{text}«"
