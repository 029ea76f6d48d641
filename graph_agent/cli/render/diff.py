"""A unified diff as lines with colours and line numbers."""

import re
from collections.abc import Iterator

from rich.text import Text

from graph_agent.cli.render.console import expand_tabs, fold, safe_text

__all__ = ["added_text", "diff_lines"]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_STYLES = {"+": "green", "-": "red", " ": ""}


def diff_lines(diff: str, width: int) -> list[Text]:
    """The diff as folded lines: old or new number, sign, text; file headers are dimmed."""
    return [piece for line, gutter in _numbered(diff) for piece in fold(line, width, gutter)]


def added_text(diff: str) -> str | None:
    """The whole new content, if the diff shows all of it: only added lines, one hunk from line 1."""
    lines = diff.removesuffix("\n").split("\n")
    start = next((number for number, line in enumerate(lines) if _HUNK.match(line)), None)
    if start is None or not lines[start].split("+", 1)[1].startswith(("1 ", "1,")):
        return None
    body = lines[start + 1 :]
    if not all(line.startswith(("+", "\\")) for line in body):
        return None
    return "\n".join(line[1:] for line in body if line.startswith("+"))


def _numbered(diff: str) -> Iterator[tuple[Text, str]]:
    old, new = 0, 0
    in_hunk = False
    lines = diff.split("\n")
    for line in lines[:-1] if not lines[-1] else lines:
        if found := _HUNK.match(line):
            old, new, in_hunk = int(found.group(1)), int(found.group(2)), True
            yield safe_text(line, "cyan"), "       "
        elif not in_hunk or line[:1] not in _STYLES:
            yield safe_text(line, "dim"), "       "
        else:
            sign = line[0]
            number = old if sign == "-" else new
            yield safe_text(sign + expand_tabs(line[1:]), _STYLES[sign]), f"{number:>6} "
            old += sign != "+"
            new += sign != "-"
