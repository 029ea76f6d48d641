"""The toolbox of a session: registry, plug-ins, policy, sandbox, web search, further folders, known secrets."""

import contextlib
import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

from graph_agent.app.instructions import load_skills
from graph_agent.config.paths import agent_paths, blob_dir, config_dir, data_dir, memory_file, read_plain_text
from graph_agent.config.redaction import SHORTEST_SECRET, Redactor, model_secrets, url_secrets
from graph_agent.config.settings import SearchSettings, Settings
from graph_agent.config.sources import item_key, load_settings
from graph_agent.errors import ConfigError, UsageError
from graph_agent.events import EventBus, ToolCallProgress
from graph_agent.ports import Blobs, FileStates, Grants, Journal, SandboxInfo
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads
from graph_agent.storage.blobs import FileBlobs
from graph_agent.toolbox import GraphToolbox, ToolboxDependencies
from graph_agent.toolbox.early_reads import EarlyReadToolbox
from graph_agent.toolbox.policy_check import Examples, check_examples
from graph_agent.toolbox.tool_context import ProgressReport
from graph_agent.toolbox.toolbox import add_tool_search
from policy import (
    DEFAULT_TOOL_RISK,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    PROTECTED_IN_PROJECTS,
    InvalidRule,
    PolicySettings,
    Rules,
    is_protected,
    parse_rules,
)
from tools import create_default_tools
from tools.base import BaseTool, ToolContext
from tools.plugins import (
    LoadedPlugin,
    PluginSource,
    PluginTool,
    load_plugin,
    source_from_setting,
    source_from_text,
    sources_from_entry_points,
)
from tools.registry import SYSTEM_TOOLS, Factory, ToolRegistry
from tools.sandbox import ProtectedNames, Sandbox, SandboxRules
from tools.sandbox.mounts import path_exists
from tools.sandbox.protected_paths import key_stores
from tools.shell_ops.background import BackgroundShells
from tools.shell_ops.background_tools import BashKillTool, BashListTool, BashOutputTool
from tools.shell_ops.bash import BashTool
from tools.web_ops.web_search import SearchProvider

__all__ = [
    "USER_TOOLS",
    "Roots",
    "ToolSource",
    "ToolStorage",
    "WorkFolders",
    "attach_shells",
    "default_registry",
    "early_reads_of",
    "full_registry",
    "known_secrets",
    "missing_search_setting",
    "open_toolbox",
    "policy_of",
    "read_only_toolbox",
    "redactor",
    "requested_roots",
    "roots_of",
    "rules_of",
    "sandbox_of",
    "sandbox_status",
    "search_provider",
    "tools_folder",
]

_VARIABLES = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}


def search_provider(settings: SearchSettings, environment: Mapping[str, str]) -> SearchProvider | None:
    """The service as it is set up; None where it is not, or not wholly."""
    if settings.provider is None or missing_search_setting(settings, environment):
        return None
    return SearchProvider(settings.provider, settings.url or "", _key(settings, environment))


def missing_search_setting(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    if settings.provider == "searxng":
        return "" if settings.url else "its address: setting web_search.url"
    variable = _VARIABLES.get(settings.provider or "", "")
    return "" if _key(settings, environment) else f"its key: setting web_search.api_key, or {variable}"


def _key(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    return environment.get(_VARIABLES.get(settings.provider or "", ""), "").strip()


_NAMED_SO = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{\w+\}")


def known_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values themselves. Settings that cannot be read hold none that are known."""
    found = [value for name, value in environment.items() if _NAMED_SO.search(name) and _is_distinctive(value)]
    try:
        found += _in_settings(load_settings(environment))
    except ConfigError:
        # Exporting works without settings; every other command reports what is wrong with them.
        found += []
    return tuple(sorted({value.strip() for value in found if len(value.strip()) >= SHORTEST_SECRET}))


def _is_distinctive(value: str) -> bool:
    """Whether a value can be told from ordinary text: words and paths stand in many places, and hide nothing."""
    return not value.isalpha() and not value.startswith(("/", "~", "./"))


@cache
def redactor() -> Redactor:
    """Hides the secrets that this process knew when it was first asked."""
    return Redactor(known_secrets(os.environ))


def _in_settings(settings: Settings) -> Iterator[str]:
    if settings.web_search.api_key is not None:
        yield settings.web_search.api_key.get_secret_value()
    for model in (settings.model, settings.general_model or settings.model, *settings.models.values()):
        yield from model_secrets(model)
    for server in settings.mcp_servers.values():
        for value in (*server.env.values(), *server.headers.values()):
            secret = value.get_secret_value()
            if not _REFERENCE.fullmatch(secret):
                yield secret
                yield secret.rpartition(" ")[2]
        yield from url_secrets(server.url or "")
        yield from (value for name, value in parse_qsl(urlsplit(server.url or "").query) if _NAMED_SO.search(name))


_NAMES = {"bubblewrap": "bubblewrap", "landlock": "Landlock"}


def sandbox_of(settings: Settings, workspace: Path, more_roots: Sequence[Path] = ()) -> Sandbox | None:
    """The sandbox that commands in this workspace are run in; None where the user wants none."""
    if settings.sandbox == "off":
        return None
    home = Path.home()
    own = tuple(Path(name).expanduser().resolve() for name in settings.sandbox_write)
    rules = SandboxRules(
        writable=tuple(dict.fromkeys((workspace.resolve(), *more_roots, *own))),
        network=settings.sandbox_network,
        hidden=(*key_stores(home, os.environ), *agent_paths(os.environ, settings.database)),
        names=_names(at_home=workspace.resolve() == home.resolve()),
        visible=(home.resolve(), *_programs()),
    )
    return Sandbox(rules, is_required=settings.sandbox == "required")


def sandbox_status(sandbox: Sandbox | None) -> SandboxInfo:
    """What there is to say of it here and now. The first look in a process takes some milliseconds."""
    if sandbox is None:
        return SandboxInfo("off", "the setting sandbox is off: commands run with all your rights")
    backend = sandbox.backend
    if backend.kind != "none":
        return SandboxInfo(_NAMES[backend.kind], sandbox.restrictions, is_active=True)
    then = "no command is run" if sandbox.is_required else "commands run with all your rights"
    return SandboxInfo("none", f"{backend.why}; {then}")


def _names(*, at_home: bool) -> ProtectedNames:
    """In a project only what is looked for there gets a placeholder: in a listing each one is in the way.

    What a `*` meets gets none anywhere: `grep x *` and `cat *` would fail at it.
    """
    every = PROTECTED_FOLDERS | PROTECTED_FILES
    placed = {name for name in every if name.startswith(".")} if at_home else PROTECTED_IN_PROJECTS
    folders, files = PROTECTED_FOLDERS & placed, PROTECTED_FILES & placed
    return ProtectedNames(is_protected, *(tuple(sorted(names)) for names in (folders, files, every - placed)))


def _programs() -> Iterator[Path]:
    """Where programs are looked for; of a virtual environment all of it."""
    for name in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if folder.is_absolute():
            yield (folder.parent if path_exists(folder.parent / "pyvenv.cfg") else folder).resolve()


_LISTS: tuple[Literal["allow", "ask", "deny"], ...] = ("allow", "ask", "deny")


class ToolStorage(NamedTuple):
    """What tools and policy keep."""

    blobs: Blobs
    file_states: FileStates
    journal: Journal
    grants: Grants


class ToolSource(Protocol):
    """Where tools come from that are not there from the beginning."""

    @property
    def registry(self) -> ToolRegistry:
        """The tools there are now."""
        ...

    async def settled(self) -> None:
        """Wait until no more are on their way."""
        ...

    def explain_missing(self, written: str) -> str:
        """Why there is none of this name, where that is known."""
        ...


async def open_toolbox(
    workspace: Path,
    settings: Settings,
    storage: ToolStorage,
    bus: EventBus,
    servers: ToolSource | None = None,
    *,
    roots: Sequence[Path] = (),
) -> GraphToolbox:
    """The tools in this workspace and these further folders, judged by the rules and by what was allowed always.

    Without servers they are those that everyone has.

    Raises:
        ConfigError: a rule cannot be read.
    """

    def on_progress(call_id: str, progress: ProgressReport) -> None:
        bus.publish(ToolCallProgress(call_id, *progress))

    ports = ToolboxDependencies(
        storage.blobs,
        storage.file_states,
        storage.journal.record_process,
        on_progress,
        storage.grants,
        redactor(),
        sandbox=sandbox_of(settings, workspace, roots),
    )
    kind = EarlyReadToolbox if _reads_begin_early(settings) else GraphToolbox
    toolbox = kind(
        servers.registry if servers else default_registry(workspace, settings),
        workspace=workspace,
        policy=policy_of(settings),
        dependencies=_serving(ports, servers),
        roots=roots,
    )
    await toolbox.load_descriptions()
    return toolbox


def _serving(ports: ToolboxDependencies, servers: ToolSource | None) -> ToolboxDependencies:
    if servers is None:
        return ports
    return replace(ports, wait_for_servers=servers.settled, explain_missing=servers.explain_missing)


def _reads_begin_early(settings: Settings) -> bool:
    """A read that a hook may block must not begin before that hook was run."""
    return settings.speculative_reads and not settings.hooks.before_tool


def early_reads_of(toolbox: GraphToolbox) -> EarlyReads:
    """What reads ahead for this toolbox."""
    return toolbox if isinstance(toolbox, EarlyReadToolbox) else NO_EARLY_READS


def read_only_toolbox(registry: ToolRegistry, workspace: Path, database: Path) -> GraphToolbox:
    """These tools, for finding out what a call did and for nothing else: no rules, and nothing is written."""
    ports = ToolboxDependencies(FileBlobs(blob_dir(database)), _NoFileStates(), _records_nothing)
    return GraphToolbox(registry, workspace=workspace, policy=PolicySettings(), dependencies=ports)


def default_registry(
    workspace: Path, settings: Settings | None = None, env: Mapping[str, str] = os.environ
) -> ToolRegistry:
    """Every tool there is in this workspace, by name; with settings also those that have to be set up."""
    registry = ToolRegistry(deferred_above=settings.tools_deferred_above if settings else None)
    search = search_provider(settings.web_search, env) if settings else None
    skills = load_skills(settings, env) if settings else ()
    made = create_default_tools(workspace=workspace, memory_file=memory_file(env), search=search, skills=skills)
    registry.register_all(made)
    add_tool_search(registry, rules_of(settings).deny if settings else ())
    return registry


def attach_shells(registry: ToolRegistry, shells: BackgroundShells) -> None:
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
    """The policy for the calls of a session.

    Raises:
        ConfigError: a rule cannot be read, or the risk of a built-in tool is set.
    """
    return PolicySettings(
        rules=rules_of(settings),
        risk=_risk_of_others(settings),
        reserved=agent_paths(os.environ, settings.database),
        exempt_files=(memory_file(os.environ).resolve(),),
        home=Path.home(),
    )


def _risk_of_others(settings: Settings) -> dict[str, str]:
    if not settings.tool_risk:
        return {}
    built_in = {*DEFAULT_TOOL_RISK, *(tool.name for tool in create_default_tools(workspace="."))} - SYSTEM_TOOLS
    for name in settings.tool_risk:
        if name in built_in:
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
    except InvalidRule as error:
        raise ConfigError(f"{_place_of_bad_rule(settings)}, table [policy]: {error}") from error


def _place_of_bad_rule(settings: Settings) -> str:
    for kind in _LISTS:
        key = f"policy.{kind}"
        for entry in settings.policy.rules(kind):
            place = settings.origins.get(item_key(key, entry.rule), settings.origins.get(key, ""))
            try:
                parse_rules(**{kind: [entry.rule]})
            except InvalidRule:
                return place
    return str(config_dir(os.environ) / "config.toml")


def _hold_examples(settings: Settings) -> None:
    for kind in _LISTS:
        for entry in settings.policy.rules(kind):
            if entry.match or entry.not_match:
                check_examples(kind, Examples(entry.rule, entry.match, entry.not_match))


USER_TOOLS = "tools"
"""Folder beside config.toml whose `*.py` files hold tools of the user's own."""

_log = logging.getLogger(__name__)

_LOAD_TIMEOUT_S = 10.0
"""How long a plug-in may take until it has given its tools; one that hangs would keep the agent from starting."""


def tools_folder(env: Mapping[str, str]) -> Path:
    """Where the user's own tools lie."""
    return config_dir(env) / USER_TOOLS


def full_registry(workspace: Path, settings: Settings) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Every tool there is in this workspace, and a line for each plug-in, or tool of one, that cannot be used.

    Imports the plug-ins, which may take seconds: not for the event loop.
    """
    registry = default_registry(workspace, settings)
    problems: list[str] = []
    for source in _sources(settings, problems):
        found = _given_in_time(source, workspace)
        problems += found.problems
        problems += [wrong for tool in found.tools if (wrong := _registered(registry, tool, source.place))]
    return registry, tuple(problems)


def _given_in_time(source: PluginSource, workspace: Path) -> LoadedPlugin:
    given: list[LoadedPlugin] = []
    # A thread of its own, that the end of the process does not wait for.
    loading = threading.Thread(target=lambda: given.append(_given(source, workspace)), daemon=True)
    # What it prints must not get between lines that programs read.
    with contextlib.redirect_stdout(sys.stderr):
        loading.start()
        loading.join(_LOAD_TIMEOUT_S)
    late = LoadedPlugin(problems=(f"{source.place}: it did not give its tools within {_LOAD_TIMEOUT_S:g} s",))
    return given[0] if given else late


def _given(source: PluginSource, workspace: Path) -> LoadedPlugin:
    try:
        return load_plugin(source, workspace)
    # In a thread of its own no Ctrl-C arrives: whatever comes here, the plug-in raised it.
    except BaseException as error:  # noqa: BLE001 - the one boundary between plug-ins' bugs and the start
        # Below the level that reaches a terminal where no log is set up: the line tells the user what matters.
        _log.info("a plug-in cannot be used: %s", source.place, exc_info=True)
        return LoadedPlugin(problems=(f"{source.place}: {type(error).__name__}: {_said(error)}",))


def _said(error: BaseException) -> str:
    try:
        return " ".join(str(error).split()) or "it says no more"
    except Exception:  # noqa: BLE001 - its text is the plug-in's own code as well
        return "it cannot say why"


def _sources(settings: Settings, problems: list[str]) -> Iterator[PluginSource]:
    """In this order, which is also that in which a model is offered them."""
    yield from sources_from_entry_points()
    yield from map(source_from_setting, settings.tools)
    for path in _own_files():
        try:
            text = read_plain_text(path)
        except (OSError, ValueError) as error:
            problems.append(f"{path}: it cannot be read: {error}")
        else:
            yield source_from_text(str(path), text)
    for place, text in settings.project_tools:
        yield source_from_text(place, text)


def _own_files() -> list[Path]:
    folder = tools_folder(os.environ)
    return sorted(path for path in folder.glob("*.py") if path.name[0] not in "._")


def _registered(registry: ToolRegistry, plugin: PluginTool, place: str) -> str:
    """Why the tool cannot be taken in; empty when it was."""
    try:
        registry.register_factory(plugin.tool.name, _factory(plugin), origin="plugin", prototype=plugin.tool)
    except ValueError as error:
        return f"{place}: {str(error).rstrip('.')}"
    return ""


def _factory(plugin: PluginTool) -> Factory:
    def fresh(_: ToolContext | None) -> BaseTool:
        return plugin.make()

    return fresh


@dataclass(frozen=True, slots=True)
class WorkFolders:
    """Where a thread works."""

    workspace: Path
    roots: tuple[Path, ...] = ()
    """Resolved."""


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of a thread beside its workspace."""

    usable: tuple[Path, ...] = ()
    """Resolved, and there."""
    gone: tuple[str, ...] = ()
    """Those that were folders once."""


def requested_roots(given: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """The folders somebody asks for now, resolved.

    Raises:
        UsageError: one is no folder, the whole disk, or belongs to the agent itself.
    """
    return tuple(str(_checked(text, settings.database)) for text in given)


def roots_of(workspace: Path, stored: Iterable[str], settings: Settings) -> Roots:
    """The folders a thread has now: those of the user's settings, and its own as they were stored.

    Raises:
        UsageError: one of the settings is the whole disk or belongs to the agent itself.
    """
    usable: dict[Path, None] = {}
    gone: list[str] = []
    for text in dict.fromkeys((*map(str, settings.add_dirs), *stored)):
        path = Path(text).expanduser()
        if not path.is_dir():
            gone.append(text)
        elif not (root := _checked(text, settings.database)).is_relative_to(workspace.resolve()):
            usable[root] = None
    return Roots(tuple(usable), tuple(gone))


def _checked(text: str, database: Path) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise UsageError(f"--add-dir {text!r} is not a folder; create it or name another")
    root = path.resolve()
    if root == Path(root.anchor):
        raise UsageError(f"--add-dir {text!r} is the whole disk; name the folder that is needed")
    for own in (config_dir(os.environ), data_dir(os.environ), database.parent / f"{database.name}.blobs"):
        if root.is_relative_to(own.resolve()):
            raise UsageError(
                f"--add-dir {text!r} lies in {own}, which belongs to the agent itself; name another folder"
            )
    return root
