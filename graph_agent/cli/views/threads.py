"""The `threads` commands that list, show, diff, rename, delete and search."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.calls import FINAL
from graph_agent.cli.views.calls import call_json, call_table
from graph_agent.cli.views.format import confirm, format_message, format_omitted, open_reader, read_list
from graph_agent.cli.views.table import (
    colorize,
    format_columns,
    format_fields,
    format_time,
    id_shortener,
    line_width,
    print_json,
    print_json_lists,
    print_lines,
    print_result,
    print_text,
    truncate,
)
from graph_agent.config.paths import own_command
from graph_agent.errors import DamagedDatabase, NothingYet, UnknownId, UsageError
from graph_agent.inspect import Reader, SearchHit, Target, ThreadSummary, TranscriptEntry, call_end
from graph_agent.ports.usage import format_usage, usage_report
from graph_agent.wording import escape, format_age, format_count, format_names

if TYPE_CHECKING:
    from graph_agent.app.threads import Deleted


__all__ = [
    "confirm_delete",
    "list_threads",
    "print_deleted",
    "search_threads",
    "show_changes",
    "show_thread",
    "thread_json",
]

_LAST_MESSAGES = 20
_JSON_FIRST = (
    *("thread_id", "title", "workspace", "status", "updated_at", "checkpoint_id", "turns"),
    *("pending_approvals", "interrupted_calls", "answered_calls"),
)


def list_threads(database: Path, *, as_json: bool) -> None:
    """Print every thread, newest first."""
    lost = 0
    try:
        with open_reader(database) as reader:
            threads = reader.threads()
            lost = 0 if threads else reader.lost_threads()
    except NothingYet:
        threads = []
    if lost:
        raise DamagedDatabase(
            f"{database} has no threads, although nobody deleted {format_count(lost, 'thread')} that it had. "
            "Restore a backup together with its -wal file, or accept the loss with `graph-agent doctor --repair`."
        )
    lines = _thread_table(threads) if threads else "No threads yet. Start one with: graph-agent chat"
    print_result(lambda: {"threads": list(map(thread_json, threads))}, lines, as_json=as_json)


def thread_json(thread: ThreadSummary) -> dict[str, Any]:
    """A thread in the JSON shape of `threads list`."""
    facts = asdict(thread)
    holder = facts.pop("holder")
    facts.pop("last_lease")
    facts["usage"] = usage_report(thread.usage) if thread.usage is not None else None
    ordered = {name: facts.pop(name) for name in _JSON_FIRST}
    return {**ordered, **facts, "held_by": holder and {name: holder[name] for name in ("pid", "host", "since")}}


def _thread_table(threads: list[ThreadSummary]) -> Iterator[str]:
    short = id_shortener(thread.thread_id for thread in threads)

    def format_pending(thread: ThreadSummary) -> str:
        counts = {
            "to approve": thread.pending_approvals,
            "interrupted": thread.interrupted_calls,
            "answered": thread.answered_calls,
        }
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "-"

    columns: dict[str, Callable[[tuple[int, ThreadSummary]], str]] = {
        "THREAD": lambda row: short(row[1].thread_id),
        "STATUS": lambda row: row[1].status,
        "PENDING": lambda row: format_pending(row[1]),
        "UPDATED": lambda row: format_age(row[1].updated_at),
        "TURNS": lambda row: str(row[1].turns),
        "WORKSPACE": lambda row: row[1].workspace,
        "TITLE": lambda row: f"{'  ' * (row[0] - 1)}└ {row[1].title}" if row[0] else row[1].title,
    }
    if len({thread.workspace for thread in threads}) == 1:
        del columns["WORKSPACE"]
    whole = "graph-agent threads show THREAD"
    return format_columns(_with_depth(threads), columns, path_column="WORKSPACE", whole=whole)


def _with_depth(threads: list[ThreadSummary]) -> Iterator[tuple[int, ThreadSummary]]:
    """The threads in their order, each sub-agent below its parent, with its depth."""
    known = {thread.thread_id for thread in threads}
    roots: list[ThreadSummary] = []
    children: dict[str, list[ThreadSummary]] = {}
    for thread in threads:
        parent = thread.parent_thread if thread.parent_call is not None else None
        (children.setdefault(parent, []) if parent in known and parent is not None else roots).append(thread)
    stack = [(0, thread) for thread in reversed(roots)]
    while stack:
        depth, thread = stack.pop()
        yield depth, thread
        stack.extend((depth + 1, child) for child in reversed(children.get(thread.thread_id, [])))


def show_thread(
    database: Path,
    text: str,
    workspace: str | None,
    *,
    as_json: bool = False,
    full: bool = False,
    all_branches: bool = False,
) -> None:
    """Print one thread; with `full` every message, in full, with `all_branches` also of abandoned branches."""
    with open_reader(database) as reader:
        thread = reader.thread(reader.resolve(text, workspace).thread_id)
        thread_id = thread.thread_id

        def transcript() -> Iterator[TranscriptEntry]:
            return reader.iter_messages(thread_id, all_branches=all_branches)

        if not as_json:
            print_lines(_thread_lines(reader, thread, full=full, all_branches=all_branches))
            reader.require_intact_head(thread_id)
            return
        from graph_agent.inspect.transcript import sum_tokens

        facts = {"add_dirs": list(reader.roots(thread_id)), "tokens": sum_tokens(transcript())}
        calls = (call_json(call) for call in reader.iter_calls(thread_id))
        messages = (asdict(entry) for entry in transcript())
        print_json_lists({**thread_json(thread), **facts}, {"calls": calls, "transcript": messages})
        reader.require_intact_head(thread_id)


def _thread_lines(reader: Reader, thread: ThreadSummary, *, full: bool, all_branches: bool) -> Iterator[str]:
    statuses: Counter[str] = Counter()
    open_calls = []
    for call in reader.iter_calls(thread.thread_id, brief=True):
        statuses[call_end(call.record).word] += 1
        if call.record["status"] not in FINAL and not call.record.get("abandoned"):
            open_calls.append(call)
    usage, outcome = thread.usage, thread.outcome.replace("_", " ")
    if not usage:
        # Threads of old versions have no stored usage: it is the total of their messages.
        from graph_agent.inspect.transcript import sum_tokens

        tokens = sum_tokens(reader.iter_messages(thread.thread_id, all_branches=all_branches))
        usage = {**tokens, "unpriced_requests": 1}
    yield from format_fields(
        {
            "thread": thread.thread_id,
            "title": thread.title,
            "status": thread.status,
            "held by": _holder(thread),
            "workspace": thread.workspace,
            "also in": ", ".join(reader.roots(thread.thread_id)),
            "model": thread.model,
            "mode": thread.mode,
            "created": format_time(thread.created_at),
            "updated": format_time(thread.updated_at),
            "checkpoint": thread.checkpoint_id or "",
            "turns": f"{thread.turns}{f', last one ended: {outcome}' if outcome else ''}",
            "queued": str(thread.queued_messages or ""),
            "forked from": thread.parent_thread or "" if thread.parent_call is None else "",
            "sub-agent of": f"{thread.parent_thread}, call {thread.parent_call}" if thread.parent_call else "",
            "tokens": format_usage(usage_report(usage)),
            "calls": ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in statuses.items()),
        }
    )
    if open_calls:
        yield ""
        yield from call_table(open_calls, reader.shared_call_ids())
    entries, omitted = _messages(reader, thread.thread_id, full=full, all_branches=all_branches)
    for number, entry in enumerate(entries):
        if number == 0:
            yield ""
            if omitted:
                yield format_omitted(omitted, "earlier message")
        yield from format_message(entry.role, entry.body, full=full)


def _holder(thread: ThreadSummary) -> str:
    if thread.holder is not None:
        return f"process {thread.holder.pid} on {thread.holder.host} since {format_time(thread.holder.since)}"
    last = thread.last_lease
    if last is None or last.ended_at is not None:
        return ""
    return f"nobody; the last process (pid {last.pid} on {escape(last.host)}) ended unexpectedly"


def _messages(
    reader: Reader, thread_id: str, *, full: bool, all_branches: bool
) -> tuple[Iterable[TranscriptEntry], int]:
    """The messages to show and the number of earlier ones. No more than these are read: a thread may be long."""
    if full:
        return reader.iter_messages(thread_id, all_branches=all_branches), 0
    if all_branches:
        everything = reader.transcript(thread_id, all_branches=True)
        return everything[-_LAST_MESSAGES:], max(len(everything) - _LAST_MESSAGES, 0)
    recent = reader.recent(thread_id, _LAST_MESSAGES)
    return recent.entries, recent.earlier


def show_changes(database: Path, text: str, here: str | None, *, as_json: bool) -> None:
    """Print the file changes of one thread as a unified diff that `patch` and `git apply` read."""
    # Imported late: only this view reads files of the workspace.
    from graph_agent.app.file_changes import thread_changes

    changes = thread_changes(database, text, here)
    if as_json:
        print_json(asdict(changes))
        return
    if not (changes.files or changes.by_commands):
        print_text("No files changed.")
    for one in changes.by_commands:
        command = one.command.strip().split("\n", 1)[0]
        print_text(f"# not shown: {format_names(one.files, one.more)}: changed by $ {command}")
    for file in changes.files:
        if file.status == "unreadable":
            print_text(f"# {file.path}: not shown: {file.by_others}")
            continue
        if file.by_others:
            print_text(f"# {file.path}: {file.by_others}")
        print_lines(map(escape, file.diff.removesuffix("\n").split("\n")))


def confirm_delete(threads: Sequence[ThreadSummary]) -> bool:
    """Show the threads and ask whether to delete them.

    Raises:
        UsageError: stdin is no terminal.
    """
    if not sys.stdin.isatty():
        raise UsageError("Deleting cannot be undone and needs a confirmation. Without a terminal, add --yes.")
    for thread in threads:
        count = thread.pending_approvals + thread.interrupted_calls
        pending = f", {format_count(count, 'pending call')}" if count else ""
        print_text(f"{thread.thread_id}  {format_count(thread.turns, 'turn')}{pending}  {thread.title}")
    what = "this thread" if len(threads) == 1 else f"these {len(threads)} threads"
    return confirm(f"Delete {what} with all messages and calls? This cannot be undone.")


def print_deleted(done: "Deleted", *, as_json: bool) -> None:
    """Print what was deleted."""
    result = {"deleted": [one.thread_id for one in done.threads], "collected": asdict(done.collected)}
    lines = [escape(f"Deleted {one.thread_id}: {one.title}") for one in done.threads]
    print_result(result, lines or "Nothing was deleted.", as_json=as_json)


def search_threads(database: Path, text: str, limit: int, *, as_json: bool) -> None:
    """Print the messages of all threads that contain the words, newest first.

    Raises:
        UsageError: the text is blank.
        DamagedDatabase: a thread that was found has a damaged checkpoint; raised once all is printed.
    """
    if not text.strip():
        raise UsageError("The search text is blank. Give one or more words.")

    def search(reader: Reader) -> list[tuple[SearchHit, str, str]]:
        short = id_shortener(thread.thread_id for thread in reader.threads())
        hits = islice(reader.search(text), limit + 1)
        return [(hit, short(hit.thread_id), _checkpoint_name(reader, hit)) for hit in hits]

    found = read_list(database, search)
    has_more = len(found) > limit
    if as_json:
        hits = [{**asdict(hit), "marks": [list(mark) for mark in hit.marks]} for hit, _, _ in found[:limit]]
        print_json({"query": text, "hits": hits, "more": has_more})
    elif not found:
        print_text(f"No message contains “{text}”.")
    else:
        print_lines(line for hit in found[:limit] for line in _hit_lines(*hit))
        if has_more:
            print_text(f"… more results; show them with --limit {limit * 2}")
    if found:
        with open_reader(database) as reader:
            for thread_id in dict.fromkeys(hit.thread_id for hit, _, _ in found[:limit]):
                reader.require_intact_head(thread_id)


def _checkpoint_name(reader: Reader, hit: SearchHit) -> str:
    """The id that `resume` accepts: a copied thread has checkpoints with the same ids as its original."""
    checkpoint = Target("checkpoint", hit.thread_id, hit.checkpoint_id or "")
    try:
        is_unique = reader.resolve(checkpoint.id, kinds=("checkpoint",)) == checkpoint
    except UnknownId:
        is_unique = False
    return checkpoint.id if is_unique else str(checkpoint)


def _hit_lines(hit: SearchHit, thread: str, checkpoint: str) -> Iterator[str]:
    width = line_width()
    head = escape(f"{thread}  {format_age(hit.at)}  {hit.role}  {hit.title}")
    yield colorize(truncate(head, width) if width else head, "heading")
    snippet, end = [], 0
    for first, last in hit.marks:
        word = escape(hit.snippet[first:last])
        marked = colorize(word, "found")
        snippet += [escape(hit.snippet[end:first]), marked if marked != word else f"»{word}«"]
        end = last
    yield f"  {''.join([*snippet, escape(hit.snippet[end:])])}"
    if hit.checkpoint_id:
        yield f"  {own_command()} resume {escape(checkpoint)}"
