"""`diff`: what differs between two checkpoints, as text or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import clipped, line_width, print_json, print_lines
from graph_agent.inspect import Change, Reader, differences

__all__ = ["show_difference"]


def show_difference(database: Path, old: str, new: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the changes that lead from one state to the other."""
    with Reader.open(database) as reader:
        before, after = (_values(reader, text, workspace) for text in (old, new))
    changes = differences(before, after)
    if as_json:
        print_json({"changes": [asdict(change) for change in changes]})
    else:
        print_lines(_lines(changes))


def _values(reader: Reader, text: str, workspace: str | None) -> dict[str, Any]:
    target = reader.resolve(text, workspace)
    found = reader.inspection(target.thread_id, target.id if target.kind == "checkpoint" else None)
    return dict(found.state.values)


def _lines(changes: list[Change]) -> Iterator[str]:
    if not changes:
        yield "nothing differs"
    for change in changes:
        if change.op != "added":
            yield _line("-", change.path, change.old)
        if change.op != "removed":
            yield _line("+", change.path, change.new)


def _line(mark: str, path: str, value: Any) -> str:
    line = escape(f"{mark} {path}: {json.dumps(value, ensure_ascii=False)}")
    width = line_width()
    return line if width is None else clipped(line, width)
