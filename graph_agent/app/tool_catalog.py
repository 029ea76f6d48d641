"""The tools of a workspace and what is known about them before any call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.app.mcp_servers import SessionServers, server_views
from graph_agent.app.toolset import full_registry, policy_of
from graph_agent.config.settings import Settings
from graph_agent.events import Event, EventBus, WarningIssued
from graph_agent.toolbox import MCP_PREFIX
from graph_agent.toolbox.facts import tool_risk
from graph_agent.toolbox.toolbox import available_tool_names, denied_tools
from tools.base import Limits
from tools.registry import ToolRegistry, is_available_in_plan_mode

__all__ = ["ToolCatalog", "ToolInfo", "load_tool_catalog", "registry_for"]


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One registered tool."""

    name: str
    risk: str
    """Of its calls, if no rule applies."""
    kind: str
    origin: str
    """builtin, plugin or mcp."""
    original_name: str
    """The name that its MCP server gives it; empty for other tools."""
    rule_name: str
    """A server's tool with the server's and its own spelling: rules may use this name too."""
    offered: bool
    """Whether a model gets it in the mode that was asked about."""
    display_name: str
    category: str
    version: str
    tags: tuple[str, ...]
    timeout_s: float
    max_result_chars: int
    """Longer results are cut; the whole stays readable by its reference."""
    strict: bool
    """Whether the provider is asked for arguments that match the schema exactly."""
    defer: bool
    """Whether only its name is offered until a search has loaded it."""
    in_plan_mode: bool
    requires_input: bool
    """Whether a call of it is a question to the user."""
    argument_aliases: dict[str, str]
    """Further names under which arguments are accepted."""
    description: str
    """As the model reads it."""
    parameters: dict[str, Any]
    """JSON schema of the arguments, as the model gets it."""


class ToolCatalog(NamedTuple):
    """The tools of a workspace."""

    tools: tuple[ToolInfo, ...]
    """In the order of registration."""
    problems: tuple[str, ...]
    """A line for each plug-in, tool of one, or server that is left out."""


async def load_tool_catalog(workspace: Path, settings: Settings, mode: str, *, about: str = "") -> ToolCatalog:
    """Every registered tool; imports the plug-ins.

    Args:
        workspace: where they would work.
        settings: of that place.
        mode: the one for which `offered` is determined.
        about: a name; if it is that of a server's tool, the trusted servers are started, asked, and ended again.

    Raises:
        ConfigError: a rule of the settings cannot be read.
    """
    policy = policy_of(settings)
    async with registry_for(about, workspace, settings) as (registry, problems):
        available = available_tool_names(registry, mode, denied_tools(registry, policy.rules.deny))
        declared = {
            item["function"]["name"]: item["function"]
            for each in ("plan", "default")  # Together these offer every tool.
            for item in await registry.function_declarations(each)
        }
        tools = tuple(
            ToolInfo(
                name=tool.name,
                risk=tool_risk(tool, origin, policy),
                kind=str(tool.kind),
                origin=origin,
                original_name=tool.original_name,
                rule_name=tool.rule_name,
                offered=tool.name in available,
                display_name=tool.display_name or tool.name,
                category=tool.category,
                version=tool.version,
                tags=tuple(tool.tags),
                timeout_s=tool.timeout_s,
                max_result_chars=tool.max_result_chars or Limits().result_chars,
                strict=bool(tool.strict),
                defer=bool(tool.defer),
                in_plan_mode=is_available_in_plan_mode(tool),
                requires_input=bool(tool.requires_input),
                argument_aliases=dict(tool.argument_aliases),
                description=declared[tool.name]["description"],
                parameters=declared[tool.name]["parameters"],
            )
            for tool in registry.all()
            for origin in (registry.origin(tool.name) or "builtin",)
        )
        return ToolCatalog(tools, tuple(problems))


@asynccontextmanager
async def registry_for(
    name: str, workspace: Path, settings: Settings
) -> AsyncIterator[tuple[ToolRegistry, Sequence[str]]]:
    """Every tool there is, and a line for each that is left out.

    If the name is that of a server's tool, the trusted servers run meanwhile and their tools are among them.
    """
    registry, unusable = await asyncio.to_thread(full_registry, workspace, settings)
    if not name.strip().casefold().startswith(MCP_PREFIX):
        yield registry, [*unusable, *(one.refusal for one in server_views(settings) if one.refusal)]
        return
    bus, problems = EventBus(), list(unusable)

    def collect_warning(_: int, event: Event) -> None:
        if isinstance(event, WarningIssued):
            problems.append(event.text)

    bus.subscribe(collect_warning)
    servers = SessionServers(settings, registry, workspace, bus)
    await servers.start()
    try:
        await servers.settled()
        yield registry, problems
    finally:
        await servers.close()
