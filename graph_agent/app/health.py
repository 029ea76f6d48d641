"""Whether everything the agent stands on works: each check looks, changes nothing, and says what to do."""

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

import httpx

from graph_agent.app.check import Check
from graph_agent.app.disk import examine_disk
from graph_agent.app.plugins import full_registry
from graph_agent.app.project import notices, project_at, settings_at
from graph_agent.app.searching import examine_search
from graph_agent.app.server_views import is_amiss, known_servers
from graph_agent.app.walls import sandbox_of, walls_of
from graph_agent.config.choice import CONNECT_FIRST, choose_model, shown_url
from graph_agent.config.load import load_settings
from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ConfigError, StorageError
from graph_agent.store.health import back_up
from graph_agent.toolbox.shfmt import find_shfmt, parse_bash
from policy import Unparsable
from tools.file_ops.narrowing import ripgrep
from tools.programs import find_program
from tools.sandbox import probed

__all__ = ["Check", "back_up", "examine"]

_MODEL_WAIT_S = 5.0
_PROGRAM_WAIT_S = 5.0
_MORE = "names that decide what runs later would be protected in the workspace too, and no process stay behind"


def examine(database: Path, environment: Mapping[str, str]) -> list[Check]:
    """Every check, in the order in which they are shown. Takes seconds at most, whatever hangs."""
    checks: tuple[Callable[[], Check], ...] = (
        _versions,
        lambda: _settings(environment),
        _trust,
        _plugins,
        lambda: _model(environment),
        lambda: _program("search", ripgrep(), "searching falls back to a slower way with the same results"),
        _parser,
        lambda: _program("git", find_program("git"), "install git; the agent works without it"),
        lambda: _sandbox(environment),
        lambda: _search(environment),
        _servers,
    )
    return [*(check() for check in checks), *examine_disk(database, environment), _terminal()]


def _versions() -> Check:
    named = {"graph-agent": version("graph-agent"), "Python": platform.python_version()}
    told = ", ".join(f"{name} {number}" for name, number in {**named, "SQLite": sqlite3.sqlite_version}.items())
    return Check("versions", ok=True, detail=f"{told}, {platform.system()} {platform.machine()}")


def _settings(environment: Mapping[str, str]) -> Check:
    try:
        settings = load_settings(environment)
    except ConfigError as error:
        return Check("settings", ok=False, detail=str(error), hint="see: graph-agent config path")
    count = len(settings.origins)
    return Check("settings", ok=True, detail=f"mode {settings.mode}, {count} value{'s' if count != 1 else ''} set")


def _trust() -> Check:
    try:
        told = "; ".join(notices(project_at(Path.cwd())))
    except (ConfigError, StorageError) as error:
        return Check("trust", ok=False, detail=str(error), matters=False)
    return Check("trust", ok=True, detail=told or "nothing in this folder is ignored")


def _plugins() -> Check:
    """Imports them, as a chat does."""
    try:
        registry, problems = full_registry(Path.cwd(), settings_at(Path.cwd()))
    except (ConfigError, StorageError):
        return Check("plug-ins", ok=False, detail="not known while the settings cannot be read", matters=False)
    names = ", ".join(name for name in registry.names() if registry.origin(name) == "plugin")
    if problems:
        told = "; ".join(problems)
        return Check("plug-ins", ok=False, detail=f"left out: {told}", hint="mend or remove it", matters=False)
    return Check("plug-ins", ok=True, detail=names or "none")


def _model(environment: Mapping[str, str]) -> Check:
    try:
        settings = load_settings(environment)
    except ConfigError:
        return Check("model", ok=False, detail="not known while the settings cannot be read", hint="correct them")
    choice = choose_model(settings)
    if choice.kind == "factory":
        return Check("model", ok=True, detail=choice.reason)
    if choice.kind == "offline":
        ok = not choice.obstacle
        return Check("model", ok=ok, detail=choice.reason, hint=CONNECT_FIRST, matters=False)
    if choice.kind == "local":
        return Check("model", ok=True, detail=choice.reason)
    return _endpoint(settings.model)


def _endpoint(model: ModelSettings) -> Check:
    """Asks for the list of models, which costs nothing; the key goes there and nowhere else."""
    headers = {name: value.get_secret_value() for name, value in model.headers.items()}
    if model.api_key is not None:
        headers["Authorization"] = f"Bearer {model.api_key.get_secret_value()}"
    address = shown_url(model.endpoint)
    try:
        # The body is not read: a server may send it for ever.
        with httpx.stream("GET", f"{model.endpoint}/models", headers=headers, timeout=_MODEL_WAIT_S) as answer:
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        hint = "is the server running? The address is the setting model.base_url (GRAPH_AGENT_BASE_URL)"
        return Check("model", ok=False, detail=f"{address} cannot be reached: {type(error).__name__}", hint=hint)
    if status in (401, 403):
        hint = "the key is the setting model.api_key (OPENAI_API_KEY)"
        return Check("model", ok=False, detail=f"{address} refuses the key ({status})", hint=hint)
    if status >= 500:
        return Check("model", ok=False, detail=f"{address} fails ({status})", hint="look at the server")
    name = model.name or "no model named"
    return Check("model", ok=True, detail=f"{name} at {address}, answered {status}")


def _program(name: str, program: str | None, without: str) -> Check:
    if program is None:
        return Check(name, ok=False, detail="not found", hint=without, matters=False)
    try:
        done = subprocess.run(
            # Not in the folder the command is called in: its files must not have a say.
            [program, "--version"],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_PROGRAM_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        detail = f"{program} does not run: {type(error).__name__}"
        return Check(name, ok=False, detail=detail, hint=without, matters=False)
    first = done.stdout.strip().split("\n")[0]
    return Check(name, ok=done.returncode == 0, detail=f"{program}: {first}", matters=False)


def _parser() -> Check:
    """A text is really parsed: a program of the same name that is another one would be noticed."""
    without = "without it every shell command asks"
    found = _program("parser", find_shfmt(), without)
    try:
        tree = parse_bash("echo one && cat < two > three") if found.ok else {}
    except Unparsable as error:
        detail = f"{found.detail}, which cannot read a command: {error}"
        return Check("parser", ok=False, detail=detail, hint=without, matters=False)
    if found.ok and not tree.get("Stmts"):
        detail = f"{found.detail}, whose syntax trees are none that this program reads"
        return Check("parser", ok=False, detail=detail, hint=without, matters=False)
    return found


def _sandbox(environment: Mapping[str, str]) -> Check:
    try:
        settings = load_settings(environment)
    except ConfigError:
        return Check("sandbox", ok=False, detail="not known while the settings cannot be read", hint="correct them")
    walls = walls_of(sandbox_of(settings, Path.cwd()))
    if walls.stands:
        why = f", as {probed().why}" if probed().why else ""
        hint = f"with bubblewrap {_MORE}" if walls.name == "Landlock" else ""
        return Check("sandbox", ok=True, detail=f"{walls.name}{why}: {walls.told}", hint=hint)
    hint = "read commands before you say yes"
    if walls.name == "none":
        hint = f"install bubblewrap (package bubblewrap); until then: {hint}"
    is_fatal = walls.name == "none" and settings.sandbox == "required"
    return Check("sandbox", ok=not is_fatal, detail=f"{walls.name}: {walls.told}", hint=hint)


def _search(environment: Mapping[str, str]) -> Check:
    try:
        return examine_search(load_settings(environment).web_search, environment)
    except ConfigError:
        return Check("web search", ok=False, detail="not known while the settings cannot be read", matters=False)


def _servers() -> Check:
    try:
        servers = known_servers()
    except (ConfigError, StorageError):
        detail = "not known while the settings cannot be read"
        return Check("mcp servers", ok=False, detail=detail, matters=False)
    amiss = [f"{server.name}: {server.problem or 'not trusted'}" for server in servers if is_amiss(server)]
    ready = sum(server.state == "ready" for server in servers)
    detail = "; ".join([f"{ready} of {len(servers)} would be started" if servers else "none configured", *amiss])
    hint = "graph-agent mcp test NAME tries one, mcp trust NAME trusts it" if amiss else ""
    return Check("mcp servers", ok=not amiss, detail=detail, hint=hint, matters=False)


def _terminal() -> Check:
    size = shutil.get_terminal_size()
    encoding = sys.stdout.encoding or "unknown"
    kind = "a terminal" if sys.stdout.isatty() else "no terminal"
    detail = f"{kind}, TERM={os.environ.get('TERM', '')}, {size.columns}x{size.lines}, {encoding}"
    is_fit = encoding.lower().replace("-", "") == "utf8"
    hint = "" if is_fit else "set a UTF-8 locale, e.g. LC_ALL=C.UTF-8"
    return Check("terminal", ok=is_fit, detail=detail, hint=hint, matters=False)
