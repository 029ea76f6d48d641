"""`diff`: what differs between two checkpoints, as text or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.place import reading
from graph_agent.cli.views.screen import clipped, colored, line_width, print_json, print_lines
from graph_agent.inspect import Change, Reader, differences, is_message, role_of
from graph_agent.ports.searchable import plain_text

__all__ = ["show_difference"]


def show_difference(database: Path, old: str, new: str, workspace: str | None, *, as_json: bool) -> None:
    """Print the changes that lead from one state to the other."""
    with reading(database) as reader:
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
    line = escape(f"{mark} {path}: {_said(value) if is_message(value) else _json(value)}")
    width = line_width()
    return colored(line if width is None else clipped(line, width), "success" if mark == "+" else "error")


def _said(message: dict[str, Any]) -> str:
    """Who says what in a message, and which calls it asks for; its other fields are in the JSON."""
    calls = [f"→ {call.get('name')} {_json(call.get('args'))}" for call in message.get("tool_calls") or []]
    return " ".join(filter(None, (f"{role_of(message)}:", plain_text(message.get("content")), *calls)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
