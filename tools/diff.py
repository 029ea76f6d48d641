"""Unified diffs of texts, fast for any size and exact about line endings and missing final newlines."""

import difflib
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from tools.result import DiffResult

__all__ = ["diff_texts"]

_FINE_LINES = 4_000
"""With more lines on either side, the diff is one hunk between the common beginning and end: exact, but coarser."""
_CONTEXT = 3

_PIECE = 64 * 1024
"""Characters compared at once: copies of this size stay in the processor's cache."""


def diff_texts(path: str, before: str | None, after: str, *, digests: tuple[str | None, str]) -> DiffResult:
    """The change from before to after; `before` is None for a new file."""
    if before is not None and (_is_long(before) or _is_long(after)):
        body = _coarse(_excerpt(before, after))
    else:
        body = list(difflib.unified_diff(_lines(before or ""), _lines(after), n=_CONTEXT, lineterm="\n"))[2:]
    head = [f"--- {path if before is not None else '/dev/null'}\n", f"+++ {path}\n"]
    marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body)
    text = "".join([*head, *marked]) if body else ""
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return DiffResult(path, digests[0], digests[1], text, added, removed)


def _is_long(text: str) -> bool:
    # In a very long text, the beginning is enough.
    return text.count("\n", 0, 100 * _FINE_LINES) >= _FINE_LINES or text.count("\n") >= _FINE_LINES


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


class _Excerpt(NamedTuple):
    """The lines that differ, with a few equal ones around them."""

    skipped: int
    old: list[str]
    new: list[str]


def _excerpt(old: str, new: str) -> _Excerpt:
    # Large texts are compared as a whole: splitting them into lines first costs ten times as much.
    a, b = len(old), len(new)
    limit = min(a, b)
    start = _common_length(limit, lambda here, there: new.startswith(old[here:there], here))
    tail = _common_length(limit, lambda here, there: new.startswith(old[a - there : a - here], b - there))
    start = old.rfind("\n", 0, start) + 1
    end = a - min(tail, a - start, b - start)
    for _ in range(_CONTEXT):
        start = old.rfind("\n", 0, max(0, start - 1)) + 1
    for _ in range(_CONTEXT + 1):  # Once more, to the end of the line that is cut.
        end = old.find("\n", end) + 1 or a
    return _Excerpt(old.count("\n", 0, start), _lines(old[start:end]), _lines(new[start : b - (a - end)]))


def _common_length(limit: int, is_same: Callable[[int, int], bool]) -> int:
    """How far two texts are the same: piece by piece, then by halving the piece that differs."""
    same, step = 0, min(limit, _PIECE)
    while step:
        if is_same(same, same + step):
            same += step
            step = min(step, limit - same)
        else:
            step //= 2
    return same


def _coarse(excerpt: _Excerpt) -> list[str]:
    skipped, old, new = excerpt
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    remaining_old, remaining_new = old[head:], new[head:]
    ends = zip(reversed(remaining_old), reversed(remaining_new), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    gone, come = remaining_old[: len(remaining_old) - tail], remaining_new[: len(remaining_new) - tail]
    if not gone and not come:
        return []
    before, after = old[max(0, head - _CONTEXT) : head], remaining_old[len(gone) : len(gone) + _CONTEXT]
    around = len(before) + len(after)
    start = skipped + head - len(before) + 1
    hunk = f"@@ -{start},{len(gone) + around} +{start},{len(come) + around} @@\n"
    return [
        hunk,
        *(f" {line}" for line in before),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in after),
    ]
