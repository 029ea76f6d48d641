"""`tools list`, `tools show` and `tools stats`; `agents list` and `agents show`.

The first two raise ConfigError if a setting is invalid. They load the settings and the tools late: statistics need
neither.
"""

import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph_agent.cli.views.format import read_list
from graph_agent.cli.views.table import format_columns, format_fields, print_result, print_text
from graph_agent.errors import UsageError
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.app.tool_catalog import ToolCatalog, ToolInfo
    from graph_agent.config.settings import Settings
    from tools.agent_ops.new_task import NamedAgent


__all__ = ["list_agents", "list_tools", "show_agent", "show_statistics", "show_tool"]

_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?: |\Z)")
"""The full stop of an abbreviation ("e.g. a preference") ends no sentence."""


def list_tools(mode: str | None, *, as_json: bool) -> None:
    """Print every registered tool, with the first sentence of its description."""
    catalog = _read_tools(mode)
    columns = {
        "TOOL": lambda tool: tool.name,
        "RISK": lambda tool: tool.risk,
        "KIND": lambda tool: tool.kind,
        "ORIGIN": lambda tool: tool.origin,
        "ENABLED": lambda tool: _yes_or_no(tool.offered),
        "DESCRIPTION": lambda tool: _SENTENCE_END.split(tool.description.partition("\n")[0], maxsplit=1)[0],
    }
    result = {"tools": list(map(_tool_json, catalog.tools)), "problems": list(catalog.problems)}
    table = format_columns(catalog.tools, columns, whole="graph-agent tools show TOOL")
    print_result(result, table, as_json=as_json)
    if not as_json:
        print_text(*(f"! Not available: {problem}" for problem in catalog.problems))


def show_tool(name: str, mode: str | None, *, as_json: bool) -> None:
    """Print one tool as the model receives it. For a tool of an MCP server, the server is started and stopped.

    Raises:
        UsageError: there is no such tool.
    """
    catalog = _read_tools(mode, about=name)
    tool = next((tool for tool in catalog.tools if name and name in (tool.name, tool.rule_name)), None)
    if tool is None:
        names = [tool.name for tool in catalog.tools]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Tools: {', '.join(names)}."
        problems = f" Not available: {'; '.join(catalog.problems)}." if catalog.problems else ""
        raise UsageError(f"No tool named {name!r}. {hint}{problems}")
    result = {**_tool_json(tool), "description": tool.description, "parameters": tool.parameters}
    print_result(result, _tool_lines(tool), as_json=as_json)


def show_statistics(database: Path, *, as_json: bool) -> None:
    """Print how often each tool ran, with its results and run times."""
    statistics = read_list(database, lambda reader: reader.statistics())
    columns = {
        "TOOL": lambda one: one.tool,
        "RUNS": lambda one: str(one.executions),
        "OK": lambda one: str(one.successes),
        "FAILED": lambda one: str(one.failures),
        "UNFINISHED": lambda one: str(one.unfinished),
        "TOTAL": lambda one: _format_seconds(one.total_s),
        "AVERAGE": lambda one: _format_seconds(one.average_s),
        "P95": lambda one: _format_seconds(one.p95_s),
    }
    lines = format_columns(statistics, columns) if statistics else "No tool has run yet."
    print_result({"tools": list(map(asdict, statistics))}, lines, as_json=as_json)


def _read_tools(mode: str | None, *, about: str = "") -> "ToolCatalog":
    from asyncio import run

    from graph_agent.app.project_trust import settings_at
    from graph_agent.app.tool_catalog import load_tool_catalog

    settings = settings_at(Path.cwd(), {"mode": mode})
    return run(load_tool_catalog(Path.cwd(), settings, settings.mode, about=about))


def _tool_json(tool: "ToolInfo") -> dict[str, object]:
    return {name: value for name, value in asdict(tool).items() if name not in ("description", "parameters")}


def _tool_lines(tool: "ToolInfo") -> Iterator[str]:
    yield from format_fields(
        {
            "tool": tool.name,
            "risk": tool.risk,
            "kind": tool.kind,
            "origin": tool.origin,
            "original name": tool.original_name,
            "name in rules": tool.rule_name,
            "enabled": _yes_or_no(tool.offered),
            "in plan mode": _yes_or_no(tool.in_plan_mode),
            "deferred": _yes_or_no(tool.defer),
            "requires input": _yes_or_no(tool.requires_input),
            "display name": tool.display_name,
            "category": tool.category,
            "version": tool.version,
            "tags": ", ".join(tool.tags),
            "time limit": f"{tool.timeout_s:g} s",
            "result limit": f"{tool.max_result_chars} characters",
            "strict": _yes_or_no(tool.strict),
            "aliases": ", ".join(f"{alias} for {name}" for alias, name in tool.argument_aliases.items()),
        }
    )
    yield ""
    yield escape(tool.description, multiline=True)
    yield ""
    yield escape(json.dumps(tool.parameters, indent=2, ensure_ascii=False), multiline=True)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _format_seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def list_agents(*, as_json: bool) -> None:
    """Print the agents; those that cannot be used with the reason."""
    from graph_agent.app.named_agents import load_agents

    settings, names = _settings_and_tools()
    agents = load_agents(settings, os.environ, names).values()
    usable = [agent for agent in agents if not agent.problem]
    columns = {
        "AGENT": lambda agent: agent.name,
        "TOOLS": _tools_of,
        "MODEL": lambda agent: agent.model or "-",
        "MODE": lambda agent: agent.mode or "-",
        "DESCRIPTION": lambda agent: agent.description,
    }
    lines: Any = format_columns(usable, columns) if usable else "No agents are defined."
    print_result({"agents": list(map(asdict, agents))}, lines, as_json=as_json)
    if not as_json:
        print_text(*(f"! Not usable: {agent.problem}" for agent in agents if agent.problem))
        from graph_agent.app.project_trust import project_at, project_notices

        project = project_at(Path.cwd())
        print_text(*(project_notices(project) if project.files and not project.is_trusted else ()))


def show_agent(name: str, *, as_json: bool) -> None:
    """Print one agent.

    Raises:
        UsageError: there is no such agent.
        Exit: it cannot be used.
    """
    from graph_agent.app.named_agents import find_agent

    agent = find_agent(name, *_settings_and_tools())
    print_result(asdict(agent), _lines(agent), as_json=as_json)
    if agent.problem:
        raise typer.Exit(1)


def _settings_and_tools() -> "tuple[Settings, list[str]]":
    from graph_agent.app.project_trust import settings_at
    from graph_agent.app.toolset import full_registry

    settings = settings_at(Path.cwd())
    registry, _ = full_registry(Path.cwd(), settings)
    return settings, registry.names()


def _lines(agent: "NamedAgent") -> Iterator[str]:
    fields = {"agent": agent.name, "description": agent.description, "tools": _tools_of(agent)}
    fields |= {"model": agent.model or "-", "mode": agent.mode or "-", "file": agent.place}
    yield from format_fields({**fields, "problem": agent.problem} if agent.problem else fields)
    yield ""
    yield escape(agent.prompt, multiline=True)


def _tools_of(agent: "NamedAgent") -> str:
    return "all" if agent.tools is None else ", ".join(agent.tools) or "none"
