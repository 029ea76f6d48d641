"""Unified diffs of texts, quick for any size and truthful about line endings and missing final newlines."""

import difflib
from itertools import takewhile

from tools.result import DiffResult

__all__ = ["diff_of"]

_FINE_LINES = 4_000
"""Above this many lines on either side one hunk between common beginning and end is shown: exact, only coarser."""
_CONTEXT = 3


def diff_of(path: str, before: str | None, after: str, *, digests: tuple[str | None, str]) -> DiffResult:
    """The change from before to after; `before` is None for a new file."""
    old, new = _lines(before or ""), _lines(after)
    if before is not None and max(len(old), len(new)) > _FINE_LINES:
        body = _coarse(old, new)
    else:
        body = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm="\n"))[2:]
    head = [f"--- {path if before is not None else '/dev/null'}\n", f"+++ {path}\n"]
    text = "".join(_shown(line) for line in [*head, *body]) if body else ""
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return DiffResult(path, digests[0], digests[1], text, added, removed)


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _shown(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _coarse(old: list[str], new: list[str]) -> list[str]:
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest_old, rest_new = old[head:], new[head:]
    ends = zip(reversed(rest_old), reversed(rest_new), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    gone, come = rest_old[: len(rest_old) - tail], rest_new[: len(rest_new) - tail]
    if not gone and not come:
        return []
    before, after = old[max(0, head - _CONTEXT) : head], rest_old[len(gone) : len(gone) + _CONTEXT]
    around = len(before) + len(after)
    start = head - len(before) + 1
    hunk = f"@@ -{start},{len(gone) + around} +{start},{len(come) + around} @@\n"
    return [
        hunk,
        *(f" {line}" for line in before),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in after),
    ]
