"""`tools list`, `tools show` and `tools stats`."""

import asyncio
import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.reader import read_database
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import format_fields, format_table, print_json, print_lines
from graph_agent.errors import NothingYet, UsageError

if TYPE_CHECKING:
    from graph_agent.app.tool_catalog import ToolCatalog, ToolInfo


__all__ = ["list_tools", "show_statistics", "show_tool"]

_UNLISTED = ("description", "parameters")
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?: |\Z)")


def list_tools(mode: str | None, *, as_json: bool) -> None:
    """Print every registered tool.

    Raises:
        ConfigError: a setting is invalid.
    """
    tools, problems = _read_tools(mode)
    if as_json:
        print_json({"tools": [_tool_json(tool) for tool in tools], "problems": list(problems)})
        return
    rows = [
        (tool.name, tool.risk, tool.kind, tool.origin, _yes(tool.offered), _first_sentence(tool.description))
        for tool in tools
    ]
    print_lines(format_table(("TOOL", "RISK", "KIND", "ORIGIN", "ENABLED", "DESCRIPTION"), rows))
    print_lines(escape(f"! Not available: {problem}") for problem in problems)


def show_tool(name: str, mode: str | None, *, as_json: bool) -> None:
    """Print one tool as the model receives it. For a tool of an MCP server, the server is started and stopped.

    Raises:
        UsageError: there is no such tool.
        ConfigError: a setting is invalid.
    """
    tool = _find_tool(name, _read_tools(mode, about=name))
    if as_json:
        print_json({**_tool_json(tool), "description": tool.description, "parameters": tool.parameters})
    else:
        print_lines(_tool_lines(tool))


def show_statistics(database: Path, *, as_json: bool) -> None:
    """Print how often each tool ran, with its results and run times."""
    try:
        with read_database(database) as reader:
            found = reader.statistics()
    except NothingYet:
        found = []
    if as_json:
        print_json({"tools": [asdict(item) for item in found]})
    elif not found:
        print_lines(["No tool has run yet."])
    else:
        rows = [
            (
                item.tool,
                *map(str, (item.executions, item.successes, item.failures, item.unfinished)),
                *map(_seconds, (item.total_s, item.average_s, item.p95_s)),
            )
            for item in found
        ]
        head = ("TOOL", "RUNS", "OK", "FAILED", "UNFINISHED", "TOTAL", "AVERAGE", "P95")
        print_lines(format_table(head, rows))


def _read_tools(mode: str | None, *, about: str = "") -> "ToolCatalog":
    # Imported late: statistics need neither the settings nor the tools.
    from graph_agent.app.project_trust import settings_at
    from graph_agent.app.tool_catalog import load_tool_catalog

    settings = settings_at(Path.cwd(), {"mode": mode})
    return asyncio.run(load_tool_catalog(Path.cwd(), settings, settings.mode, about=about))


def _find_tool(name: str, known: "ToolCatalog") -> "ToolInfo":
    for tool in known.tools:
        if name and name in (tool.name, tool.rule_name):
            return tool
    names = [tool.name for tool in known.tools]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Tools: {', '.join(names)}."
    problems = f" Not available: {'; '.join(known.problems)}." if known.problems else ""
    raise UsageError(f"No tool named {name!r}. {hint}{problems}")


def _tool_json(tool: "ToolInfo") -> dict[str, object]:
    facts = asdict(tool)
    return {name: value for name, value in facts.items() if name not in _UNLISTED}


def _tool_lines(tool: "ToolInfo") -> Iterator[str]:
    yield from format_fields(
        {
            "tool": tool.name,
            "risk": tool.risk,
            "kind": tool.kind,
            "origin": tool.origin,
            "original name": tool.original_name,
            "name in rules": tool.rule_name,
            "enabled": _yes(tool.offered),
            "in plan mode": _yes(tool.in_plan_mode),
            "deferred": _yes(tool.defer),
            "requires input": _yes(tool.requires_input),
            "display name": tool.display_name,
            "category": tool.category,
            "version": tool.version,
            "tags": ", ".join(tool.tags),
            "time limit": f"{tool.timeout_s:g} s",
            "result limit": f"{tool.max_result_chars} characters",
            "strict": _yes(tool.strict),
            "aliases": ", ".join(f"{alias} for {name}" for alias, name in tool.argument_aliases.items()),
        }
    )
    yield ""
    yield escape(tool.description, multiline=True)
    yield ""
    yield escape(json.dumps(tool.parameters, indent=2, ensure_ascii=False), multiline=True)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _first_sentence(text: str) -> str:
    """Without its full stop; the one of an abbreviation ("e.g. a preference") ends no sentence."""
    return _SENTENCE_END.split(text.partition("\n")[0], maxsplit=1)[0]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
