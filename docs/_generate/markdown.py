"""The few Markdown shapes that the generated pages are made of."""

from collections.abc import Iterable, Sequence

__all__ = ["code", "mermaid", "note", "table"]


def note(*sources: str) -> str:
    """The first line of a page: who writes it, and from what."""
    return f"<!-- Written by `make docs` from {' and '.join(sources)}. -->"


def code(text: str) -> str:
    """Text as it is typed; nothing for nothing."""
    return f"`{text}`" if text else ""


def mermaid(kind: str, lines: Iterable[str]) -> list[str]:
    """A diagram."""
    return ["```mermaid", kind, *(f"    {line}" for line in lines), "```"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with its head."""
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
