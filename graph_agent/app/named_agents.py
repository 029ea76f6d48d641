"""Agents that are defined in Markdown files: instructions with their tools, model and mode."""

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from graph_agent.calls import PLAN_TOOL
from graph_agent.config.paths import config_dir, read_plain_text
from graph_agent.config.settings import SELECTABLE_MODES, Settings
from graph_agent.config.user_commands import field_items, split_front_matter
from graph_agent.errors import UsageError
from graph_agent.storage.sqlite.row_values import damaged_value, load_json
from tools.agent_ops.new_task import NEW_TASK, NamedAgent, NewTaskTool, SubAgentPort
from tools.registry import (
    ToolRegistry,
    is_available_in_plan_mode,
    keep_only,
    resolve_tool_name,
    unknown_tool_message,
)

__all__ = [
    "NO_AGENT",
    "agent_from_json",
    "agent_of_thread",
    "agent_to_json",
    "find_agent",
    "load_agents",
    "register_new_task",
    "remove_new_task",
]

NO_AGENT = NamedAgent("", "", "")
"""Changes nothing."""

_UNTRUSTED = (
    "This folder is not trusted, so its agents are ignored; see what it would enable with: graph-agent config trust"
)
_MAX_NAME_CHARS = 64
_FIELDS = ("name", "description", "tools", "model", "mode")
_NAME = re.compile(r"\w[\w.-]{0,63}")
_MAX_BYTES = 256 * 1024
_MAX_AGENTS = 200


def agent_of_thread(stored: str | None, name: str, settings: Settings, registry: ToolRegistry) -> NamedAgent:
    """The agent that a thread works as; the registry keeps only its tools, and what ends plan mode for those.

    Args:
        stored: the definition that an existing thread was started with.
        name: what a new thread is to work as; empty for no agent.

    Raises:
        UsageError: there is no such agent, or it cannot be used.
    """
    agent = agent_from_json(stored) if stored is not None else NO_AGENT
    if stored is None and name:
        agent = find_agent(name, settings, registry.names())
        if agent.problem:
            raise UsageError(f"The agent {name!r} cannot be used. {agent.problem}")
    if agent.tools is not None:
        # In plan mode these wait for a plan that the user accepts.
        needs_plan = any(agent.allows(tool.name) and not is_available_in_plan_mode(tool) for tool in registry.all())
        keep_only(registry, lambda name: agent.allows(name) or (needs_plan and name == PLAN_TOOL))
    return agent


def find_agent(name: str, settings: Settings, tools: Collection[str]) -> NamedAgent:
    """The agent of this name, which may be one that cannot be used. `tools` are the names of registered tools.

    Raises:
        UsageError: there is no such agent.
    """
    agents = load_agents(settings, os.environ, tools)
    if name not in agents:
        known = ", ".join(one.name for one in agents.values() if not one.problem) or "none"
        hint = f" {_UNTRUSTED}" if settings.is_folder_untrusted else ""
        raise UsageError(f"There is no agent {name!r}. Defined: {known}.{hint}")
    return agents[name]


def load_agents(settings: Settings, env: Mapping[str, str], tools: Collection[str]) -> dict[str, NamedAgent]:
    """Every agent, by name; one of the user hides one of the project. `tools` are the names of registered tools."""
    texts = [(Path(place), text) for place, text in settings.project_agents]
    # For this agent before those for another one: what comes later hides what comes before.
    texts.sort(key=lambda found: not _is_fallback(found[0]))
    for file in sorted((config_dir(env) / "agents").glob("*.md"))[:_MAX_AGENTS]:
        with contextlib.suppress(OSError):
            if file.stat().st_size <= _MAX_BYTES:
                texts.append((file, read_plain_text(file, errors="replace")))
    found = {agent.name: agent for agent in (_parse(file, text, tools) for file, text in texts)}
    return {name: found[name] for name in sorted(found)}


def _is_fallback(file: Path) -> bool:
    return ".claude" in file.parts[-3:-1]


def _parse(file: Path, text: str, tools: Collection[str]) -> NamedAgent:
    fields, body = split_front_matter(text)
    listed = field_items(fields["tools"]) if "tools" in fields else None
    names = None if listed is None else tuple(resolve_tool_name(one, tools) or one for one in listed)
    agent = NamedAgent(
        fields.get("name") or file.stem,
        " ".join(fields.get("description", "").split()),
        body,
        names,
        fields.get("model", ""),
        fields.get("mode", ""),
        str(file),
    )
    if _is_fallback(file):
        # It was written for another program, where models, modes and some tools have other names.
        fields, agent = {}, NamedAgent(agent.name, agent.description, body, names, place=str(file))
        tools = names or ()
    problem = next(_problems(agent, fields, tools), "")
    return NamedAgent(**{**asdict(agent), "tools": names, "problem": problem and f"{file}: {problem}"})


def _problems(agent: NamedAgent, fields: Mapping[str, str], tools: Collection[str]) -> Iterator[str]:
    """What is wrong with a definition, a sentence each."""
    if len(agent.name) > _MAX_NAME_CHARS:
        yield f"name: it has {len(agent.name)} characters; at most {_MAX_NAME_CHARS} are allowed."
    if not _NAME.fullmatch(agent.name):
        yield f"name: {agent.name!r} may have only letters, digits, dots and dashes."
    if not agent.prompt:
        yield "There are no instructions below the front matter."
    for field in fields:
        if field not in _FIELDS:
            yield f"There is no field {field!r}. The fields are {', '.join(_FIELDS)}."
    if agent.mode and agent.mode not in SELECTABLE_MODES:
        yield f"mode: {agent.mode!r} is not one of {', '.join(SELECTABLE_MODES)}."
    for name in agent.tools or ():
        # Tools of MCP servers are known only once their server runs.
        if not name.startswith("mcp__") and not any(fnmatchcase(tool, name) for tool in tools):
            yield f"tools: {unknown_tool_message(name, tools)}"


def agent_to_json(agent: NamedAgent) -> str:
    """An agent as it is stored with a thread; empty for none."""
    return json.dumps(asdict(agent), ensure_ascii=False) if agent.name else ""


def agent_from_json(text: str) -> NamedAgent:
    """The agent that is stored with a thread."""
    if not text:
        return NO_AGENT
    stored = load_json(text, dict)
    try:
        return NamedAgent(**{**stored, "tools": None if stored["tools"] is None else tuple(stored["tools"])})
    except (KeyError, TypeError) as error:
        raise damaged_value(f"A thread holds {text!r:.60} as its agent") from error


def register_new_task(
    registry: ToolRegistry,
    workspace: Path,
    agents: Mapping[str, NamedAgent],
    *,
    may_delegate: bool,
    sub_agents: SubAgentPort | None = None,
) -> None:
    """Offer the tool that starts sub-agents, if the thread may have some; without a port it is only declared."""
    if remove_new_task(registry) and may_delegate:
        registry.register(NewTaskTool(workspace=workspace, sub_agents=sub_agents, agents=tuple(agents.values())))


def remove_new_task(registry: ToolRegistry) -> bool:
    """Unregister the built-in `new_task`; False if there is none, or it is the user's own tool, which stays."""
    return registry.origin(NEW_TASK) == "builtin" and registry.unregister(NEW_TASK)
