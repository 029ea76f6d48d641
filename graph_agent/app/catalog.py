"""Which tools there are and what is known of them before any call: judges nothing, runs nothing but imports."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.app.plugins import full_registry
from graph_agent.app.tooling import policy_of
from graph_agent.config.settings import Settings
from graph_agent.toolbox.facts import risk_here
from graph_agent.toolbox.offering import hidden_names, offered_names
from policy import PolicySettings
from tools.base import BaseTool, Limits
from tools.registry import Origin, plans

__all__ = ["KnownTool", "KnownTools", "known_tools"]


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
    max_result_chars: int
    """Longer results are cut; the whole stays readable by its reference."""
    strict: bool
    """Whether the provider is asked for arguments that hold the schema exactly."""
    defer: bool
    """Whether only its name is offered until a search has loaded it."""
    in_plan_mode: bool
    wants_answer: bool
    """Whether a call of it is a question to the user."""
    argument_aliases: dict[str, str]
    """Further names under which arguments are taken."""
    description: str
    """As the model reads it."""
    parameters: dict[str, Any]
    """JSON schema of the arguments, as the model gets it."""


class KnownTools(NamedTuple):
    """What a workspace has."""

    tools: tuple[KnownTool, ...]
    """In the order of registration."""
    problems: tuple[str, ...]
    """A line for each plug-in, or tool of one, that is left out."""


async def known_tools(workspace: Path, settings: Settings, mode: str) -> KnownTools:
    """Every registered tool; imports the plug-ins.

    Raises:
        ConfigError: a rule of the settings cannot be read.
    """
    policy = policy_of(settings)
    registry, problems = await asyncio.to_thread(full_registry, workspace, settings)
    hidden = hidden_names(registry, policy.rules.deny)
    offered = offered_names(registry, mode, hidden)
    declared = {item["function"]["name"]: item["function"] for item in await registry.function_declarations()}
    known = (
        _known(tool, registry.origin(tool.name) or "builtin", policy, declared[tool.name], tool.name in offered)
        for tool in registry.all()
    )
    return KnownTools(tuple(known), problems)


def _known(
    tool: BaseTool, origin: Origin, policy: PolicySettings, declared: dict[str, Any], is_offered: bool
) -> KnownTool:
    return KnownTool(
        name=tool.name,
        risk=risk_here(tool, origin, policy),
        kind=str(tool.kind),
        origin=origin,
        offered=is_offered,
        display_name=tool.display_name or tool.name,
        category=tool.category,
        version=tool.version,
        tags=tuple(tool.tags),
        timeout_s=tool.timeout_s,
        max_result_chars=tool.max_result_chars or Limits().result_chars,
        strict=bool(tool.strict),
        defer=bool(tool.defer),
        in_plan_mode=plans(tool),
        wants_answer=bool(tool.wants_answer),
        argument_aliases=dict(tool.argument_aliases),
        description=declared["description"],
        parameters=declared["parameters"],
    )
