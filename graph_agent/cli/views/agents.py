"""`agents list` and `agents show`: the agents that the user and a trusted project define.

Both raise ConfigError if a setting is invalid.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph_agent.app.named_agents import load_agents
from graph_agent.app.project_trust import project_notices, settings_at
from graph_agent.app.toolset import full_registry
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.settings import current_project
from graph_agent.cli.views.table import format_columns, format_fields, print_result, print_text
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from tools.agent_ops.new_task import NamedAgent

__all__ = ["list_agents", "show_agent"]


def list_agents(*, as_json: bool) -> None:
    """Print the agents; those that cannot be used with the reason."""
    agents = _load().values()
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
        if current_project().files and not current_project().is_trusted:
            print_text(*project_notices(current_project()))


def show_agent(name: str, *, as_json: bool) -> None:
    """Print one agent.

    Raises:
        UsageError: there is no such agent.
        Exit: it cannot be used.
    """
    agents = _load()
    if name not in agents:
        raise UsageError(f"No agent is named {name!r}. Defined: {', '.join(agents) or 'none'}.")
    agent = agents[name]
    print_result(asdict(agent), _lines(agent), as_json=as_json)
    if agent.problem:
        raise typer.Exit(1)


def _load() -> dict[str, "NamedAgent"]:
    settings = settings_at(Path.cwd())
    registry, _ = full_registry(Path.cwd(), settings)
    return load_agents(settings, os.environ, registry.names())


def _lines(agent: "NamedAgent") -> Iterator[str]:
    fields = {"agent": agent.name, "description": agent.description, "tools": _tools_of(agent)}
    fields |= {"model": agent.model or "-", "mode": agent.mode or "-", "file": agent.place}
    yield from format_fields({**fields, "problem": agent.problem} if agent.problem else fields)
    yield ""
    yield escape(agent.prompt, multiline=True)


def _tools_of(agent: "NamedAgent") -> str:
    return "all" if agent.tools is None else ", ".join(agent.tools) or "none"
