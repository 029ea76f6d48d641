"""`tools list` and `tools show`: the tools there are, as a table, one as the model reads it, and as JSON."""

import asyncio
import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from graph_agent.app.catalog import KnownTool, known_tools
from graph_agent.app.project import settings_at
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import labelled, table
from graph_agent.errors import UsageError

__all__ = ["list_tools", "show_tool"]

_LISTED = ("name", "risk", "kind", "origin", "offered", "display_name", "category", "version", "tags", "timeout_s")


def list_tools(mode: str | None, *, as_json: bool) -> None:
    """Print every registered tool.

    Raises:
        ConfigError: a setting is wrong.
    """
    tools = _tools(mode)
    if as_json:
        print_json({"tools": [_listed(tool) for tool in tools]})
    else:
        print_lines(table(("TOOL", "RISK", "KIND", "ORIGIN", "OFFERED", "ABOUT"), [_row(tool) for tool in tools]))


def show_tool(name: str, mode: str | None, *, as_json: bool) -> None:
    """Print one tool with what the model is told of it.

    Raises:
        UsageError: there is no such tool.
        ConfigError: a setting is wrong.
    """
    tool = _named(name, _tools(mode))
    if as_json:
        print_json({**_listed(tool), "description": tool.description, "parameters": tool.parameters})
    else:
        print_lines(_lines(tool))


def _tools(mode: str | None) -> Sequence[KnownTool]:
    settings = settings_at(Path.cwd(), {"mode": mode})
    return asyncio.run(known_tools(Path.cwd(), settings, settings.mode))


def _named(name: str, tools: Sequence[KnownTool]) -> KnownTool:
    for tool in tools:
        if tool.name == name:
            return tool
    names = [tool.name for tool in tools]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}."
    raise UsageError(f"there is no tool {name!r}; {hint}")


def _listed(tool: KnownTool) -> dict[str, object]:
    facts = asdict(tool)
    return {name: facts[name] for name in _LISTED}


def _row(tool: KnownTool) -> tuple[str, ...]:
    about = tool.description.partition("\n")[0]
    return tool.name, tool.risk, tool.kind, tool.origin, "yes" if tool.offered else "no", about


def _lines(tool: KnownTool) -> Iterator[str]:
    yield from labelled(
        {
            "tool": tool.name,
            "risk": tool.risk,
            "kind": tool.kind,
            "origin": tool.origin,
            "offered": "yes" if tool.offered else "no",
            "version": tool.version,
            "tags": ", ".join(tool.tags),
            "time limit": f"{tool.timeout_s:g} s",
        }
    )
    yield ""
    yield escape(tool.description, multiline=True)
    yield ""
    yield escape(json.dumps(tool.parameters, indent=2, ensure_ascii=False), multiline=True)
