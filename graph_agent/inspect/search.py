"""Finds the messages of all threads that hold every word of a text, newest first.

The text is data: it has no operators. The search index narrows the choice where it can, and every message is then
examined itself; what the index does not hold yet is scanned. The system message and summaries are left out: the
messages that a summary stands for are found themselves.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph_agent.ports.read_store import ReadStore
from graph_agent.ports.stored_text import LONGEST_WORD, searchable

__all__ = ["SearchHit", "search_messages"]

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
