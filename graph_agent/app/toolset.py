"""The tools of a session and what limits them: registry, plug-ins, policy, sandbox, web search, further folders."""

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from graph_agent.app.instructions import load_skills
from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import (
    agent_paths,
    blob_dir,
    config_dir,
    data_dir,
    folder_at,
    memory_file,
    read_plain_text,
)
from graph_agent.config.project import repository_above
from graph_agent.config.redaction import redactor
from graph_agent.config.settings import SearchSettings, Settings
from graph_agent.config.sources import item_key
from graph_agent.errors import ConfigError, UsageError
from graph_agent.events import EventBus, ToolCallProgress
from graph_agent.ports import Blobs, FileStates, Grants, Journal, SandboxInfo
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads, ReadBuffer
from graph_agent.storage import open_blobs
from graph_agent.storage.sqlite.threads import ThreadTable
from graph_agent.toolbox import GraphToolbox, ToolboxDependencies
from graph_agent.toolbox.early_reads import EarlyReadToolbox
from graph_agent.toolbox.editor_buffers import UnsavedText
from graph_agent.toolbox.policy_check import Examples, check_examples
from graph_agent.toolbox.toolbox import add_tool_search
from policy import (
    DEFAULT_TOOL_RISK,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    PROTECTED_IN_PROJECTS,
    InvalidRule,
    PolicySettings,
    Rules,
    closed_paths,
    contacting_program,
    is_protected,
    parse_rules,
    parse_shell,
    unparsed_shell,
)
from tools import create_default_tools
from tools.base import BaseTool, Limits, ToolContext
from tools.plugins import (
    LoadedPlugin,
    PluginSource,
    PluginTool,
    load_plugin,
    source_from_setting,
    source_from_text,
    sources_from_entry_points,
)
from tools.programs import exclude_folders, path_folders
from tools.registry import SYSTEM_TOOLS, ToolRegistry
from tools.sandbox import ProtectedNames, Sandbox, SandboxRules
from tools.sandbox.protected_paths import key_stores, path_exists
from tools.shell_ops.background import BackgroundShells
from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
from tools.shell_ops.bash import BashTool
from tools.shell_ops.bash_parser import parse_bash
from tools.web_ops.web_search import SearchProvider

__all__ = [
    "Roots",
    "ToolSource",
    "ToolStorage",
    "WorkFolders",
    "attach_shells",
    "default_registry",
    "early_reads_of",
    "exclude_writable_folders",
    "full_registry",
    "missing_search_setting",
    "open_toolbox",
    "policy_of",
    "read_only_toolbox",
    "requested_roots",
    "roots_of",
    "rules_of",
    "sandbox_of",
    "sandbox_status",
    "search_provider",
    "unenforced_rules",
]

_log = logging.getLogger(__name__)

_LOAD_TIMEOUT_S = 10.0
"""How long a plug-in may take to load; one that hangs would keep the agent from starting."""
_WEB_TOOLS = frozenset(("web_fetch", "web_search"))
_SHELLS = frozenset(("bash", "powershell"))
_MAX_NAMES = 5
"""Of tools, in a sentence."""
_SEARCH_KEYS = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
_RULE_LISTS: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")


class WorkFolders(NamedTuple):
    """Where a thread works."""

    workspace: Path
    roots: tuple[Path, ...] = ()
    """Resolved."""
    read_buffer: ReadBuffer | None = None
    """Asks the editor in which the user has files of these folders open."""


class ToolStorage(NamedTuple):
    """Where tools and policy store what they keep."""

    blobs: Blobs
    file_states: FileStates
    journal: Journal
    grants: Grants
    threads: ThreadTable


class ToolSource(Protocol):
    """A registry whose tools may still be on their way, such as those of MCP servers."""

    @property
    def registry(self) -> ToolRegistry:
        """The tools there are now."""
        ...

    async def settled(self) -> None:
        """Wait until no more are on their way."""
        ...

    def explain_missing(self, written: str) -> str:
        """Why there is no tool of this name; empty if that is not known."""
        ...


async def open_toolbox(
    place: WorkFolders,
    settings: Settings,
    storage: ToolStorage,
    bus: EventBus,
    servers: ToolSource | None = None,
) -> GraphToolbox:
    """The tools in these folders, under the user's rules and saved permissions.

    Without servers they are the built-in ones.

    Raises:
        ConfigError: a rule cannot be read.
    """
    workspace, roots, read_buffer = place
    registry = servers.registry if servers else default_registry(workspace, settings)
    dependencies = ToolboxDependencies(
        storage.blobs,
        storage.file_states,
        storage.journal.record_process,
        lambda call_id, progress: bus.publish(ToolCallProgress(call_id, *progress)),
        storage.grants,
        redactor(),
        sandbox=sandbox_of(settings, workspace, roots),
        buffers=UnsavedText(read_buffer) if read_buffer else None,
        find_untrusted_content=partial(_find_untrusted_content, storage.threads, registry, settings, workspace),
    )
    if servers is not None:
        dependencies = replace(
            dependencies, wait_for_servers=servers.settled, explain_missing=servers.explain_missing
        )
    # A read that a hook may block must not start before that hook was run.
    reads_early = settings.speculative_reads and not (settings.hooks.before_call or settings.hooks.before_tool)
    toolbox = (EarlyReadToolbox if reads_early else GraphToolbox)(
        registry,
        workspace=workspace,
        policy=policy_of(settings),
        dependencies=dependencies,
        limits=Limits(call_s=settings.tool_timeout),
        roots=roots,
    )
    await toolbox.load_descriptions()
    return toolbox


async def _find_untrusted_content(
    threads: ThreadTable, registry: ToolRegistry, settings: Settings, workspace: Path, thread_id: str
) -> str:
    """What a thread contains that is neither the user's nor a trusted folder's, in words; empty for nothing.

    That is what the tools for the web and commands that contacted a host returned, and tools that are not built in,
    which may return anything. What its sub-agents and the threads above it contain counts too.
    """
    if await threads.is_from_file(thread_id):
        return "messages that were imported from a file"
    executed = await threads.executed_calls(thread_id)
    foreign = sorted({name for name, _ in executed if name in _WEB_TOOLS or not _is_built_in(name, registry)})
    if foreign:
        return f"results of {', '.join(name or 'an unknown tool' for name in foreign[:_MAX_NAMES])}"
    commands = sorted((name, text) for name, text in executed if name in _SHELLS)
    if contact := await asyncio.to_thread(lambda: next(filter(None, (_contact(*one) for one in commands)), "")):
        return f"results of {contact}"
    return f"the files of {workspace}, a folder that you have not trusted" if settings.is_folder_untrusted else ""


def _contact(tool: str, command: str) -> str:
    """The tool, with what contacted a host in its command; empty if nothing did."""
    text = parse_shell(command, parse_bash) if tool == "bash" else unparsed_shell(command)
    program = contacting_program(command, text)
    return f"{tool} ({program})" if program else ""


def _is_built_in(name: str, registry: ToolRegistry) -> bool:
    """Whether a tool is one of this program, even if it is not enabled now."""
    return name in DEFAULT_TOOL_RISK and registry.origin(name) in (None, "builtin")


def early_reads_of(toolbox: GraphToolbox) -> EarlyReads:
    """The early reads of this toolbox, if it has any."""
    return toolbox if isinstance(toolbox, EarlyReadToolbox) else NO_EARLY_READS


def read_only_toolbox(registry: ToolRegistry, workspace: Path, database: Path) -> GraphToolbox:
    """These tools, only to find out what a call did: no rules, and nothing is written."""
    dependencies = ToolboxDependencies(open_blobs(database), _NoFileStates(), _record_nothing)
    return GraphToolbox(registry, workspace=workspace, policy=PolicySettings(), dependencies=dependencies)


class _NoFileStates:
    async def get(self, thread_id: str, path: str) -> str | None:  # noqa: ARG002 - port
        return None

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        """Nothing is run, so nothing is noted."""


async def _record_nothing(thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
    """Nothing is run, so nothing is recorded."""


def default_registry(
    workspace: Path, settings: Settings | None = None, env: Mapping[str, str] = os.environ
) -> ToolRegistry:
    """The built-in tools in this workspace; with settings also those that have to be set up."""
    registry = ToolRegistry(deferred_above=settings.tools_deferred_above if settings else None)
    search = search_provider(settings.web_search, env) if settings else None
    skills = load_skills(settings, env) if settings else ()
    registry.register_all(
        create_default_tools(workspace=workspace, memory_file=memory_file(env), search=search, skills=skills)
    )
    add_tool_search(registry, rules_of(settings).deny if settings else ())
    return registry


def attach_shells(registry: ToolRegistry, shells: BackgroundShells) -> None:
    """Give the tools that start, read or end background shells the ones of this session."""
    for tool in registry:
        if isinstance(tool, BashTool | BashOutputTool | BashListTool | BashKillTool):
            tool.shells = shells


def full_registry(workspace: Path, settings: Settings) -> tuple[ToolRegistry, tuple[str, ...]]:
    """The built-in tools and those of plug-ins, and a line for each plug-in or tool of one that cannot be used.

    Imports the plug-ins, which may take seconds: not for the event loop.
    """
    registry = default_registry(workspace, settings)
    problems: list[str] = []
    for source in _plugin_sources(settings, problems):
        loaded = _load_in_time(source, workspace)
        problems += loaded.problems
        for plugin in loaded.tools:
            try:
                _register_plugin(registry, plugin)
            except ValueError as error:
                problems.append(f"{source.place}: {str(error).rstrip('.')}")
    return registry, tuple(problems)


def _plugin_sources(settings: Settings, problems: list[str]) -> Iterator[PluginSource]:
    """In this order, which is also the one in which a model gets them."""
    yield from sources_from_entry_points()
    yield from map(source_from_setting, settings.tools)
    folder = config_dir(os.environ) / "tools"
    for path in sorted(path for path in folder.glob("*.py") if path.name[0] not in "._"):
        try:
            text = read_plain_text(path)
        except (OSError, ValueError) as error:
            problems.append(f"{path}: it cannot be read: {error}")
        else:
            yield source_from_text(str(path), text)
    for place, text in settings.project_tools:
        yield source_from_text(place, text)


def _load_in_time(source: PluginSource, workspace: Path) -> LoadedPlugin:
    results: list[LoadedPlugin] = []

    def load() -> None:
        try:
            results.append(load_plugin(source, workspace))
        # In a thread of its own no Ctrl-C arrives: whatever is raised here comes from the plug-in.
        except BaseException as error:  # noqa: BLE001 - the one boundary between plug-ins' bugs and the start
            # Below the level that reaches a terminal if no log is set up: the line tells the user what matters.
            _log.info("a plug-in cannot be used: %s", source.place, exc_info=True)
            try:
                reason = " ".join(str(error).split()) or "no reason given"
            except Exception:  # noqa: BLE001 - its text is the plug-in's own code as well
                reason = "its message cannot be read"
            results.append(LoadedPlugin(problems=(f"{source.place}: {type(error).__name__}: {reason}",)))

    # A thread of its own, that the end of the process does not wait for.
    thread = threading.Thread(target=load, daemon=True)
    # What it prints must not get between lines that programs read.
    with contextlib.redirect_stdout(sys.stderr):
        thread.start()
        thread.join(_LOAD_TIMEOUT_S)
    late = f"{source.place}: it did not return its tools within {_LOAD_TIMEOUT_S:g} s"
    return results[0] if results else LoadedPlugin(problems=(late,))


def _register_plugin(registry: ToolRegistry, plugin: PluginTool) -> None:
    def make(_: ToolContext | None) -> BaseTool:
        return plugin.make()

    registry.register_factory(plugin.tool.name, make, origin="plugin", prototype=plugin.tool)


def policy_of(settings: Settings) -> PolicySettings:
    """The policy for the calls of a session.

    Raises:
        ConfigError: a rule cannot be read, or the risk of a built-in tool is set.
    """
    if settings.tool_risk:
        built_in = {*DEFAULT_TOOL_RISK, *(tool.name for tool in create_default_tools(workspace="."))} - SYSTEM_TOOLS
        for name in settings.tool_risk:
            if name in built_in:
                raise ConfigError(
                    f"{settings.origins.get('tool_risk', 'settings')}: tool_risk: {name!r} is a built-in tool with "
                    f'a fixed risk. Use a rule to run its calls without approval: [policy] allow = ["{name}(...)"].'
                )
    return PolicySettings(
        rules=rules_of(settings),
        risk=dict(settings.tool_risk),
        shell_risk=settings.policy.shell_risk,
        reserved=agent_paths(os.environ, settings.database),
        program_folders=tuple(dict.fromkeys(folder.resolve() for folder in path_folders(Path.cwd()))),
        exempt_files=(memory_file(os.environ).resolve(),),
        home=Path.home(),
    )


def rules_of(settings: Settings) -> Rules:
    """The user's rules.

    Raises:
        ConfigError: one cannot be read, or contradicts its examples.
    """
    lists = {kind: settings.policy.rules(kind) for kind in _RULE_LISTS}
    try:
        for kind, entries in lists.items():
            for entry in entries:
                if entry.match or entry.not_match:
                    check_examples(kind, Examples(entry.rule, entry.match, entry.not_match))
        return parse_rules(**{kind: [entry.rule for entry in entries] for kind, entries in lists.items()})
    except InvalidRule as error:
        raise ConfigError(f"{_place_of_invalid_rule(settings)}, table [policy]: {error}") from error


def _place_of_invalid_rule(settings: Settings) -> str:
    for kind in _RULE_LISTS:
        key = f"policy.{kind}"
        for entry in settings.policy.rules(kind):
            try:
                parse_rules(**{kind: [entry.rule]})
            except InvalidRule:
                return settings.origins.get(item_key(key, entry.rule), settings.origins.get(key, ""))
    return str(config_dir(os.environ) / "config.toml")


def search_provider(settings: SearchSettings, environment: Mapping[str, str]) -> SearchProvider | None:
    """The web search service; None if it is not completely set up."""
    if settings.provider is None or missing_search_setting(settings, environment):
        return None
    url = settings.url or ""
    return SearchProvider(settings.provider, url, _search_key(settings, environment), display_url(url))


def missing_search_setting(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    """The setting that the provider lacks, in words; empty if it lacks none."""
    if settings.provider == "searxng":
        return "" if settings.url else "its address: setting web_search.url"
    variable = _SEARCH_KEYS.get(settings.provider or "", "")
    return "" if _search_key(settings, environment) else f"its key: setting web_search.api_key, or {variable}"


def _search_key(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    return environment.get(_SEARCH_KEYS.get(settings.provider or "", ""), "").strip()


def sandbox_of(settings: Settings, workspace: Path, more_roots: Sequence[Path] = ()) -> Sandbox | None:
    """The sandbox for commands in this workspace; None if the user turned it off.

    Raises:
        ConfigError: a rule cannot be read.
    """
    exclude_writable_folders(settings, workspace, more_roots)
    if settings.sandbox == "off":
        return None
    home, workspace = Path.home(), workspace.resolve()
    rules = SandboxRules(
        writable=tuple(dict.fromkeys((workspace, *more_roots, *_own_folders(settings)))),
        network=settings.sandbox_network,
        hidden=(*key_stores(home, os.environ), *agent_paths(os.environ, settings.database)),
        names=_protected_names(at_home=workspace == home.resolve()),
        visible=(home.resolve(), *_program_folders()),
        protected=path_folders(workspace),
        closed=closed_paths(rules_of(settings).deny, workspace, home),
        repository=repository_above(workspace),
        memory=settings.sandbox_memory_bytes,
        processes=settings.sandbox_processes,
    )
    return Sandbox(rules, is_required=settings.sandbox == "required")


def exclude_writable_folders(settings: Settings, workspace: Path, more_roots: Sequence[Path] = ()) -> None:
    """From now on start no program from a folder that commands of this workspace may write."""
    added = [path.expanduser() for path in settings.add_dirs]
    exclude_folders((workspace, *more_roots, *added, *_own_folders(settings)))


def _own_folders(settings: Settings) -> Iterator[Path]:
    return (Path(name).expanduser().resolve() for name in settings.sandbox_write)


def _protected_names(*, at_home: bool) -> ProtectedNames:
    """In a project only names that are looked for there get a placeholder: each one is in the way of a listing.

    Names that a `*` matches get none anywhere: `grep x *` and `cat *` would fail at it.
    """
    every = PROTECTED_FOLDERS | PROTECTED_FILES
    placed = {name for name in every if name.startswith(".")} if at_home else PROTECTED_IN_PROJECTS
    folders, files = PROTECTED_FOLDERS & placed, PROTECTED_FILES & placed
    return ProtectedNames(is_protected, *(tuple(sorted(names)) for names in (folders, files, every - placed)))


def _program_folders() -> Iterator[Path]:
    """The folders of PATH; of a virtual environment all of it."""
    for name in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if folder.is_absolute():
            yield (folder.parent if path_exists(folder.parent / "pyvenv.cfg") else folder).resolve()


def sandbox_status(sandbox: Sandbox | None) -> SandboxInfo:
    """Which sandbox is used here. The first look in a process takes some milliseconds."""
    if sandbox is None:
        return SandboxInfo("off", "the setting sandbox is off: commands run with all your rights")
    backend = sandbox.backend
    if backend.kind != "none":
        name = {"landlock": "Landlock"}.get(backend.kind, backend.kind)
        return SandboxInfo(name, sandbox.restrictions, is_active=True)
    then = "no command is run" if sandbox.is_required else "commands run with all your rights"
    return SandboxInfo("none", f"{backend.why}; {then}")


def unenforced_rules(settings: Settings, workspace: Path) -> Sequence[tuple[str, str]]:
    """The deny rules about files that a command in this workspace may get past, each with the reason.

    Raises:
        ConfigError: a rule cannot be read.
    """
    rules = dict.fromkeys(one.rule for one in closed_paths(rules_of(settings).deny, workspace, Path.home()))
    # Whether there is a sandbox is found by starting one.
    sandbox = sandbox_of(settings, workspace) if rules else None
    if sandbox is not None and sandbox.is_available:
        return sandbox.unenforced_rules()
    return [(rule, "without a sandbox only the text of a command is checked") for rule in rules]


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of a thread beside its workspace."""

    usable: tuple[Path, ...] = ()
    """Resolved, and existing."""
    gone: tuple[str, ...] = ()
    """Those that were folders once."""


def requested_roots(given: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """The folders given with `--add-dir`, resolved.

    Raises:
        UsageError: one is no folder, the whole disk, or belongs to the agent itself.
    """
    return tuple(str(_checked_root(text, settings.database)) for text in given)


def roots_of(workspace: Path, stored: Iterable[str], settings: Settings) -> Roots:
    """The folders a thread has now: those of the user's settings, and its own as they were stored.

    Raises:
        UsageError: one of the settings is the whole disk or belongs to the agent itself.
    """
    usable: dict[Path, None] = {}
    gone: list[str] = []
    for text in dict.fromkeys((*map(str, settings.add_dirs), *stored)):
        if folder_at(text) is None:
            gone.append(text)
        elif not (root := _checked_root(text, settings.database)).is_relative_to(workspace.resolve()):
            usable[root] = None
    return Roots(tuple(usable), tuple(gone))


def _checked_root(text: str, database: Path) -> Path:
    root = folder_at(text)
    if root is None:
        raise UsageError(f"--add-dir {text!r} is not a folder. Create it, or choose another one.")
    if root == Path(root.anchor):
        raise UsageError(f"--add-dir {text!r} is the root of the disk. Choose the folder that you need.")
    for own in (config_dir(os.environ), data_dir(os.environ), blob_dir(database)):
        if root.is_relative_to(own.resolve()):
            raise UsageError(f"--add-dir {text!r} is in {own}, one of the agent's own folders. Choose another one.")
    return root
