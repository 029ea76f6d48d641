"""Which tools there are and what is known of them before any call. Judges nothing and runs nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.tooling import default_registry, rules_of
from graph_agent.config.settings import Settings
from policy import hidden_tools, risk_of
from tools.base import BaseTool
from tools.registry import ToolRegistry

__all__ = ["KnownTool", "known_tools"]


@dataclass(frozen=True, slots=True)
class KnownTool:
    """One registered tool."""

    name: str
    risk: str
    """Of its calls, where no rule speaks."""
    kind: str
    origin: str
    """builtin, plugin or mcp."""
    offered: bool
    """Whether a model gets it in the mode that was asked about."""
    display_name: str
    category: str
    version: str
    tags: tuple[str, ...]
    timeout_s: float
    description: str
    """As the model reads it."""
    parameters: dict[str, Any]
    """JSON schema of the arguments, as the model gets it."""


async def known_tools(workspace: Path, settings: Settings, mode: str) -> tuple[KnownTool, ...]:
    """Every registered tool, in the order of registration.

    Raises:
        ConfigError: a rule of the settings cannot be read.
    """
    registry = default_registry(workspace, settings)
    hidden = hidden_tools(rules_of(settings).deny, registry.names())
    offered = {tool.name for tool in registry.offered(mode, hidden)}
    declared = {item["function"]["name"]: item["function"] for item in await registry.function_declarations()}
    return tuple(_known(tool, registry, declared[tool.name], tool.name in offered) for tool in registry.all())


def _known(tool: BaseTool, registry: ToolRegistry, declared: dict[str, Any], is_offered: bool) -> KnownTool:
    origin = registry.origin(tool.name) or "builtin"
    return KnownTool(
        name=tool.name,
        risk=risk_of(tool.name, str(tool.risk_level), is_own=origin == "builtin"),
        kind=str(tool.kind),
        origin=origin,
        offered=is_offered,
        display_name=tool.display_name or tool.name,
        category=tool.category,
        version=tool.version,
        tags=tool.tags,
        timeout_s=tool.timeout_s,
        description=declared["description"],
        parameters=declared["parameters"],
    )
