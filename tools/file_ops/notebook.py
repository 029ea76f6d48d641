"""Jupyter notebooks as text: cells with their outputs, shortened."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tools.running import head_and_tail

__all__ = ["as_cells"]

_OUTPUT_CHARS = 2_000


def as_cells(text: str) -> str | None:
    """The cells of a notebook, one below the other; None if the text is not a notebook."""
    try:
        book = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not isinstance(book.get("nbformat"), int):
        return None
    shown = [part for number, cell in enumerate(cells, 1) for part in _cell(number, cell)]
    return "\n".join(shown) + "\n" if shown else "(the notebook has no cells)\n"


def _cell(number: int, cell: Any) -> Iterator[str]:
    if not isinstance(cell, Mapping):
        return
    yield f"--- cell {number}: {cell.get('cell_type', 'unknown')} ---"
    yield _joined(cell.get("source")).rstrip("\n")
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping) and (shown := _output(output)):
            yield f"--- output of cell {number} ---"
            yield shown.rstrip("\n")


def _output(output: Mapping[str, Any]) -> str:
    match output.get("output_type"):
        case "stream":
            text = _joined(output.get("text"))
        case "error":
            text = f"{output.get('ename', 'Error')}: {output.get('evalue', '')}"
        case _:
            text = _of_kinds(output.get("data"))
    if len(text) <= _OUTPUT_CHARS:
        return text
    return head_and_tail(text, _OUTPUT_CHARS, f"the output has {len(text)} characters")


def _of_kinds(data: Any) -> str:
    kinds = data if isinstance(data, Mapping) else {}
    text = _joined(kinds.get("text/plain"))
    others = [f"[{kind}, not shown]" for kind in kinds if not str(kind).startswith("text/")]
    return "\n".join(part for part in (text, *others) if part)


def _joined(source: Any) -> str:
    """Notebooks store a text as one string or as a list of lines."""
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")
