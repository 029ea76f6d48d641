"""`threads search`: the messages of all threads that hold the words, newest first, with what was found marked."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import clipped, colored, line_width, local_time, print_json, print_lines
from graph_agent.cli.views.table import short_ids
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.inspect import Hit, Reader, Target

__all__ = ["search_threads"]


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
            short = short_ids(thread.thread_id for thread in reader.threads())
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


def _as_json(hit: Hit) -> dict[str, Any]:
    facts = asdict(hit)
    return {**facts, "marks": [list(mark) for mark in hit.marks]}


def _place(reader: Reader, hit: Hit) -> str:
    """What `resume` takes for it: a thread that was copied has its checkpoints under the same ids as the other."""
    checkpoint = Target("checkpoint", hit.thread_id, hit.checkpoint_id or "")
    try:
        is_enough = reader.resolve(checkpoint.id, kinds=("checkpoint",)) == checkpoint
    except UnknownId:
        is_enough = False
    return checkpoint.id if is_enough else str(checkpoint)


def _lines(hit: Hit, thread: str, resumed_at: str) -> Iterator[str]:
    room = line_width()
    place = f"{thread}  {local_time(hit.at)}  {hit.role}  {hit.title}"
    yield colored(clipped(escape(place), room) if room else escape(place), "heading")
    yield f"  {_marked(hit)}"
    if hit.checkpoint_id:
        yield f"  graph-agent resume {escape(resumed_at)}"


def _marked(hit: Hit) -> str:
    shown, end = [], 0
    for first, last in hit.marks:
        shown += [escape(hit.snippet[end:first]), _mark(escape(hit.snippet[first:last]))]
        end = last
    return "".join([*shown, escape(hit.snippet[end:])])


def _mark(text: str) -> str:
    coloured = colored(text, "found")
    return coloured if coloured != text else f"»{text}«"
