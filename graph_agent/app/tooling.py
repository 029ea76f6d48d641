"""Joins tools, policy and their ports into the toolbox of a session."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from graph_agent.app.searching import search_provider
from graph_agent.app.secrets import scrub_here
from graph_agent.app.skills import skills_of
from graph_agent.app.walls import sandbox_of
from graph_agent.config.paths import blob_dir, config_dir, memory_file, own_places
from graph_agent.config.settings import Settings
from graph_agent.config.tightening import item_key
from graph_agent.errors import ConfigError
from graph_agent.events import CallProgressed, EventBus
from graph_agent.ports import Blobs, FileStates, Grants, Journal
from graph_agent.ports.early import NOTHING_EARLY, EarlyReads
from graph_agent.store.blobs import FileBlobs
from graph_agent.toolbox import GraphToolbox, ToolboxPorts
from graph_agent.toolbox.adapters import Told
from graph_agent.toolbox.early import ReadingToolbox
from graph_agent.toolbox.examples import Examples, hold_examples
from graph_agent.toolbox.offering import add_tool_search
from policy import DEFAULT_TOOL_RISK, BadRule, PolicySettings, Rules, parse_rules
from tools import create_default_tools
from tools.registry import SYSTEM_TOOLS, ToolRegistry
from tools.shell_ops.background import BackgroundShells
from tools.shell_ops.bash import BashTool
from tools.shell_ops.bash_kill import BashKillTool
from tools.shell_ops.bash_list import BashListTool
from tools.shell_ops.bash_output import BashOutputTool

__all__ = [
    "Servers",
    "ToolStorage",
    "default_registry",
    "early_reads_of",
    "lend_shells",
    "open_toolbox",
    "policy_of",
    "rules_of",
    "toolbox_for_looking",
]


_LISTS: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")


class ToolStorage(NamedTuple):
    """What tools and policy keep."""

    blobs: Blobs
    file_states: FileStates
    journal: Journal
    grants: Grants


class Servers(Protocol):
    """Where tools come from that are not there from the beginning."""

    @property
    def registry(self) -> ToolRegistry:
        """The tools there are now."""
        ...

    async def settled(self) -> None:
        """Wait until no more are on their way."""
        ...

    def why_missing(self, written: str) -> str:
        """Why there is none of this name, where that is known."""
        ...


async def open_toolbox(
    workspace: Path,
    settings: Settings,
    storage: ToolStorage,
    bus: EventBus,
    servers: Servers | None = None,
    *,
    roots: Sequence[Path] = (),
) -> GraphToolbox:
    """The tools in this workspace and these further folders, judged by the rules and by what was allowed always.

    Without servers they are those that everyone has.

    Raises:
        ConfigError: a rule cannot be read.
    """

    def on_progress(call_id: str, told: Told) -> None:
        bus.publish(CallProgressed(call_id, *told))

    ports = ToolboxPorts(
        storage.blobs,
        storage.file_states,
        storage.journal.record_process,
        on_progress,
        storage.grants,
        scrub_here(),
        sandbox=sandbox_of(settings, workspace, roots),
    )
    kind = ReadingToolbox if _reads_begin_early(settings) else GraphToolbox
    toolbox = kind(
        servers.registry if servers else default_registry(workspace, settings),
        workspace=workspace,
        policy=policy_of(settings),
        ports=_serving(ports, servers),
        roots=roots,
    )
    await toolbox.prepare()
    return toolbox


def _serving(ports: ToolboxPorts, servers: Servers | None) -> ToolboxPorts:
    if servers is None:
        return ports
    return replace(ports, servers_settled=servers.settled, why_missing=servers.why_missing)


def _reads_begin_early(settings: Settings) -> bool:
    """A read that a hook may block must not begin before that hook was run."""
    return settings.speculative_reads and not settings.hooks.before_tool


def early_reads_of(toolbox: GraphToolbox) -> EarlyReads:
    """What reads ahead for this toolbox."""
    return toolbox if isinstance(toolbox, ReadingToolbox) else NOTHING_EARLY


def toolbox_for_looking(registry: ToolRegistry, workspace: Path, database: Path) -> GraphToolbox:
    """These tools, for finding out what a call did and for nothing else: no rules, and nothing is written."""
    ports = ToolboxPorts(FileBlobs(blob_dir(database)), _NoFileStates(), _records_nothing)
    return GraphToolbox(registry, workspace=workspace, policy=PolicySettings(), ports=ports)


def default_registry(
    workspace: Path, settings: Settings | None = None, env: Mapping[str, str] = os.environ
) -> ToolRegistry:
    """Every tool there is in this workspace, by name; with settings also those that have to be set up."""
    registry = ToolRegistry(deferred_above=settings.tools_deferred_above if settings else None)
    search = search_provider(settings.web_search, env) if settings else None
    skills = skills_of(settings, env) if settings else ()
    made = create_default_tools(workspace=workspace, memory_file=memory_file(env), search=search, skills=skills)
    registry.register_all(made)
    add_tool_search(registry, rules_of(settings).deny if settings else ())
    return registry


def lend_shells(registry: ToolRegistry, shells: BackgroundShells) -> None:
    """Give the tools that start, read or end background shells the ones of this session."""
    for tool in registry:
        if isinstance(tool, BashTool | BashOutputTool | BashListTool | BashKillTool):
            tool.shells = shells


class _NoFileStates:
    async def get(self, thread_id: str, path: str) -> str | None:  # noqa: ARG002 - port
        return None

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        """Nothing is run, so nothing is noted."""


async def _records_nothing(thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
    """Nothing is run, so nothing is recorded."""


def policy_of(settings: Settings) -> PolicySettings:
    """What judges the calls of a session.

    Raises:
        ConfigError: a rule cannot be read, or the risk of a built-in tool is set.
    """
    return PolicySettings(
        rules=rules_of(settings),
        risk=_risk_of_others(settings),
        reserved=own_places(os.environ, settings.database),
        open_files=(memory_file(os.environ).resolve(),),
        home=Path.home(),
    )


def _risk_of_others(settings: Settings) -> dict[str, str]:
    for name in settings.tool_risk:
        if name in DEFAULT_TOOL_RISK and name not in SYSTEM_TOOLS:
            raise ConfigError(
                f"{settings.origins.get('tool_risk', 'settings')}: tool_risk: {name!r} is built in and has a fixed "
                f'risk; a rule lets its calls run unasked: [policy] allow = ["{name}(...)"].'
            )
    return dict(settings.tool_risk)


def rules_of(settings: Settings) -> Rules:
    """The user's rules.

    Raises:
        ConfigError: one cannot be read, or does not mean what its examples say.
    """
    try:
        _hold_examples(settings)
        texts = {kind: [entry.rule for entry in settings.policy.rules(kind)] for kind in _LISTS}
        return parse_rules(allow=texts["allow"], ask=texts["ask"], deny=texts["deny"])
    except BadRule as error:
        raise ConfigError(f"{_place_of_bad_rule(settings)}, table [policy]: {error}") from error


def _place_of_bad_rule(settings: Settings) -> str:
    for kind in _LISTS:
        key = f"policy.{kind}"
        for entry in settings.policy.rules(kind):
            place = settings.origins.get(item_key(key, entry.rule), settings.origins.get(key, ""))
            try:
                parse_rules(**{kind: [entry.rule]})
            except BadRule:
                return place
    return str(config_dir(os.environ) / "config.toml")


def _hold_examples(settings: Settings) -> None:
    for kind in _LISTS:
        for entry in settings.policy.rules(kind):
            if entry.match or entry.not_match:
                hold_examples(kind, Examples(entry.rule, entry.match, entry.not_match))
