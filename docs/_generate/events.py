"""Renders docs/events.md from the event classes: their order, their types and their fields."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType
from typing import Any, get_args

from docs._generate.markdown import code, note, table
from graph_agent import events
from graph_agent.events import Event

__all__ = ["page"]

_INTRODUCTION = """\
A run reports what happens as events: frozen facts, numbered from 1 without gaps. The terminal is drawn
from them, and `run --output stream-json` prints each as one line of JSON: `seq`, `type`, and the fields below;
the last line has the type `result`. Lines about a call also have its `state`: `WAIT` while it streams in and until
it runs, `DOING`, then `SUCCESS` or `ERROR`. [events.schema.json](events.schema.json) is the JSON schema; in Python,
`graph_agent.events.LiveCalls` combines the events of a call into one value.
""".splitlines()


def page() -> str:
    """Render the whole page."""
    docs = _docstrings(events)
    sections = [line for kind in get_args(Event) for line in _section(kind, docs)]
    return "\n".join(
        [
            note("graph_agent/events.py"),
            "# Events",
            "",
            *_INTRODUCTION,
            "",
            "```text",
            *_order(),
            "```",
            "",
            *sections,
        ]
    )


def _order() -> list[str]:
    lines = inspect.cleandoc(events.__doc__ or "").splitlines()
    return [line.removeprefix("    ") for line in lines if line.startswith("    ")]


def _section(kind: type[Any], docs: dict[tuple[str, str], str]) -> list[str]:
    rows = [
        (code(item.name), code(inspect.formatannotation(item.type)), docs[kind.__name__, item.name])
        for item in fields(kind)
        if item.name != "type"
    ]
    name = str(kind.__dataclass_fields__["type"].default)
    return [f"## {code(name)}", "", inspect.getdoc(kind) or "", "", *table(("field", "type", "meaning"), rows), ""]


def _docstrings(module: ModuleType) -> dict[tuple[str, str], str]:
    """What the line under each field says; empty where the name says it all."""
    return {
        (node.name, field): text
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
        for field, text in _fields_of(node)
    }


def _fields_of(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for step, following in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(step, ast.AnnAssign) and isinstance(step.target, ast.Name):
            yield step.target.id, _text(following)


def _text(step: ast.stmt) -> str:
    if isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant):
        return " ".join(str(step.value.value).split())
    return ""
