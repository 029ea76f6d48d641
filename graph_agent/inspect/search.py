"""Finds what was said, in all threads: messages that hold every word of a text, newest first.

The text is data: it has no operators. The index of words narrows the choice where it can, and every message is then
looked at itself; what the index does not hold, or not yet, is scanned. Left out are the system message, which every
thread is told alike, and summaries: the messages that one stands for are found themselves.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.connection import ReadOnlyDatabase
from graph_agent.ports.storage import LONGEST_WORD, searchable

__all__ = ["SearchHit", "search_messages"]

_BEFORE, _AFTER = 48, 112
"""Characters shown on both sides of where the first word stands."""
_LONGEST = 200
"""As much of a word as is looked for before the message itself is; statements take no patterns of any length."""

_SOUGHT = "role NOT IN ('system', 'summary')"
_STANDING = f"""
SELECT t.role, t.body, t.message_id, t.at, h.title, (
    SELECT min(c.checkpoint_id) FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.checkpoint_ns = ''
    AND c.checkpoint_id >= t.checkpoint_id)
FROM transcript t JOIN threads h USING (thread_id) WHERE t.thread_id = ? AND t.seq = ? AND t.{_SOUGHT}
"""  # noqa: S608 - nothing from outside
_ORDER = "ORDER BY at DESC, thread_id, seq DESC"
_INDEXED = f"""
SELECT t.thread_id, t.seq, t.at FROM words w JOIN searched s ON s.id = w.rowid
JOIN transcript t USING (thread_id, seq) WHERE words MATCH :words UNION
SELECT t.thread_id, t.seq, t.at FROM transcript t WHERE t.{_SOUGHT} AND NOT EXISTS (
    SELECT 1 FROM searched s WHERE s.thread_id = t.thread_id AND s.seq = t.seq) {_ORDER}
"""  # noqa: S608 - nothing from outside
_HAS_INDEX = """
SELECT 1 FROM sqlite_schema s JOIN pragma_module_list m ON m.name = 'fts5' WHERE s.name = 'words'
"""


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
    """Where to take the thread up: the first checkpoint that still stands and is not older than the message."""
    snippet: str
    """A piece of it on one line."""
    marks: tuple[tuple[int, int], ...]
    """Begin and end of each word that was looked for, in the snippet."""


def search_messages(database: ReadOnlyDatabase, text: str) -> Iterator[SearchHit]:
    """The messages in which every word of the text occurs, whatever their case.

    With the index a word is found where one begins; where nothing is, it is looked for within words, too.
    """
    words = text.split()
    if not words:
        return
    patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
    narrowing = _match_of(words)
    found = False
    for place in _indexed(database, narrowing) if narrowing else []:
        for hit in _looked_at(database, place, patterns):
            found = True
            yield hit
    if found:
        return
    for place in _scanned(database, words):
        yield from _looked_at(database, place, patterns)


def _match_of(words: Sequence[str]) -> str:
    """A question to the index that no message fails which holds the words; empty where it cannot tell."""
    parts = [part for word in words for part in re.findall(r"[A-Za-z0-9]+", word)]
    return " AND ".join(f'"{part[:LONGEST_WORD]}"*' for part in parts[:_LONGEST])


def _indexed(database: ReadOnlyDatabase, narrowing: str) -> list[tuple[Any, ...]]:
    """Where the words may stand; nowhere where there is no index, or none that can be read."""
    try:
        return database.rows(_INDEXED, {"words": narrowing}) if database.rows(_HAS_INDEX) else []
    except DamagedDatabase:
        return []


def _scanned(database: ReadOnlyDatabase, words: Sequence[str]) -> list[tuple[Any, ...]]:
    patterns = [_like(word) for word in words[:_LONGEST] if _stands_as_it_is(word)]
    condition = " AND ".join([_SOUGHT, *(["body LIKE ? ESCAPE '!'"] * len(patterns))])
    return database.rows(f"SELECT thread_id, seq, at FROM transcript WHERE {condition} {_ORDER}", patterns)  # noqa: S608 - only question marks go in


def _stands_as_it_is(word: str) -> bool:
    """Whether a body, which is JSON, holds the word as it is, and SQLite, which knows ASCII, compares as we do."""
    is_plain = json.dumps(word, ensure_ascii=False) == f'"{word}"'
    return is_plain and (word.isascii() or word.upper() == word.lower())


def _like(word: str) -> str:
    return "%" + re.sub(r"([!%_])", r"!\1", word[:_LONGEST]) + "%"


def _looked_at(
    database: ReadOnlyDatabase, place: tuple[Any, ...], patterns: Sequence[re.Pattern[str]]
) -> Iterator[SearchHit]:
    thread_id, seq, _ = place
    for role, body, message_id, at, title, checkpoint_id in database.rows(_STANDING, (thread_id, seq)):
        text = searchable(body)
        places = [pattern.search(text) for pattern in patterns]
        first = next((found.start() for found in places if found), 0)
        if all(places):
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
