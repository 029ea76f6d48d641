"""Check settings, model, tools, sandbox, database and disk, and say how to fix what does not work."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

import httpx

from graph_agent.app.mcp_servers import configured_servers, needs_attention
from graph_agent.app.project_trust import project_at, project_notices, settings_at
from graph_agent.app.reader import read_database
from graph_agent.app.toolset import full_registry, missing_search_setting, sandbox_of, sandbox_status
from graph_agent.config.model_choice import CONNECT_HELP, choose_model, display_url
from graph_agent.config.paths import blob_dir, data_dir, lock_dir
from graph_agent.config.settings import ModelSettings, SearchSettings
from graph_agent.config.sources import load_settings
from graph_agent.errors import AgentError, ConfigError, DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.storage.private_files import exposed_files, files_of_other_users
from graph_agent.storage.sqlite.health import SQLITE_VERSION, Health, back_up, check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.toolbox.bash_parser import find_shfmt, parse_bash
from policy import Unparsable
from tools.file_ops.grep_engine import find_ripgrep
from tools.paths import find_program
from tools.sandbox import detect_backend
from tools.web_ops.web_search import SearchProvider

__all__ = [
    "Check",
    "Mount",
    "RepairMessage",
    "back_up",
    "check_disk",
    "check_web_search",
    "missing_search_setting",
    "mount_of",
    "own_folders",
    "run_checks",
]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do; empty where nothing is to be done."""
    matters: bool = True
    """Whether the agent cannot do its work without it."""


@dataclass(frozen=True, slots=True)
class RepairMessage:
    """What a step says."""

    step: str
    stage: Literal["will", "done", "left"]
    """`left`: it could not be done, and why."""
    text: str


_ESCAPED = re.compile(r"\\([0-7]{3})")
_LIST = Path("/proc/self/mountinfo")
_NETWORK = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "ocfs2",
    "smb",
)
"""Beginnings of the kinds that several machines may see at once, or that another one keeps."""
_FUSE = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs", "fuse.nfs")


class Mount(NamedTuple):
    """A file system and where it is mounted."""

    place: Path
    kind: str

    @property
    def is_network(self) -> bool:
        """Whether it is another machine's."""
        return self.kind.startswith((*_NETWORK, *_FUSE))


def mount_of(folder: Path, listed: Path = _LIST) -> Mount | None:
    """The file system of a folder; None where it cannot be health."""
    try:
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
        real = folder.resolve()
    except OSError:
        return None
    found = [mount for mount in map(_mount, lines) if mount is not None and real.is_relative_to(mount.place)]
    # Of several at one place the last one hides the others.
    return max(reversed(found), key=lambda mount: len(mount.place.parts), default=None)


def _mount(line: str) -> Mount | None:
    """A line of the list: fields, of which the fifth is the place, a lone dash, the kind."""
    fields, _, about = line.partition(" - ")
    parts, kind = fields.split(), about.split()
    if len(parts) < 5 or not kind:
        return None
    # Blanks and the like stand there as their number in base eight.
    place = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), parts[4])
    return Mount(Path(place), kind[0])


_LEAST_FREE_BYTES = 100 * 1024 * 1024
_MUCH_LOG_BYTES = 64 * 1024 * 1024
_LOOK_S = 5.0
"""How long threads are compared with their checkpoints; the most recent ones first."""
_REPAIR = "graph-agent doctor --repair"
_BACKUP = "a copy made by `doctor --backup FILE` can be put in its place, once -wal and -shm beside it are gone"


def own_folders(database: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders that the agent made for itself; of a database elsewhere, the folder is somebody else's."""
    try:
        home = data_dir(environment)
    except RuntimeError:
        return []
    return [home, home / "logs"] if home == database.parent else [home / "logs"]


def check_disk(path: Path, environment: Mapping[str, str]) -> list[Check]:
    """Every check of the disk, in the order in which they are shown."""
    health, database = _database(path)
    rest: tuple[Callable[[], Check], ...] = (
        lambda: _projections(path, health),
        lambda: _shells(path, health),
        lambda: _size(path),
        lambda: _privacy(path, own_folders(path, environment)),
        lambda: _space(path),
        lambda: _file_system(path),
    )
    return [database, _schema(health), *(check() for check in rest)]


def _database(path: Path) -> tuple[Health | None, Check]:
    try:
        health = check_database(path)
        if health is not None:
            read_database(path).close()  # It sees pages that are missing at the end.
            _require_writable(path)
    except NewerSchema as error:
        return None, Check("database", ok=False, detail=str(error), hint="update graph-agent")
    except DamagedDatabase as error:
        if not path.exists():
            return None, Check("database", ok=False, detail=str(error), hint=_BACKUP)
        hint = f"{_REPAIR} takes what can be read over into a new file and keeps this one; or {_BACKUP}"
        return None, Check("database", ok=False, detail=str(error), hint=hint)
    except NothingYet:
        health = None
    except (StorageError, OSError) as error:
        hint = "check owner and permissions of the file and of its folder, or name another with --db"
        return None, Check("database", ok=False, detail=str(error), hint=hint)
    if health is None:
        return None, _absent(path)
    return health, Check("database", ok=True, detail=f"{path}: sound, {health.threads} threads")


def _require_writable(path: Path) -> None:
    for folder in (blob_dir(path), lock_dir(path)):
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is no folder, and one of the agent's own is kept there: move it away")
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise StorageError(f"{place} cannot be written: threads can be looked at, but not gone on with")


def _absent(path: Path) -> Check:
    place = _existing(path.parent)
    if not os.access(place, os.W_OK | os.X_OK):
        hint = "name a folder that you may write: --db FILE, GRAPH_AGENT_DB or GRAPH_AGENT_HOME"
        return Check("database", ok=False, detail=f"{path} cannot be made: {place} cannot be written", hint=hint)
    return Check("database", ok=True, detail=f"{path} does not exist yet; the first chat makes it")


def _schema(health: Health | None) -> Check:
    if health is None:
        return Check("schema", ok=True, detail=f"this program writes version {SCHEMA_VERSION}")
    detail = f"version {health.version} of {SCHEMA_VERSION}"
    if not health.has_search_index:
        detail += "; this SQLite has no FTS5, so `threads search` scans every message"
    if health.foreign_tables:
        detail += f"; tables of another program: {', '.join(health.foreign_tables)}"
        return Check("schema", ok=False, detail=detail, hint="they are left alone and take room", matters=False)
    if health.version < SCHEMA_VERSION:
        return Check(
            "schema", ok=True, detail=detail, hint="the next command that writes copies it, then migrates it"
        )
    return Check("schema", ok=True, detail=detail)


def _projections(path: Path, health: Health | None) -> Check:
    if health is None:
        return Check("projections", ok=True, detail="nothing to compare")
    try:
        return _compared(path)
    except AgentError as error:
        return Check("projections", ok=False, detail=str(error), hint=_REPAIR)


def _compared(path: Path) -> Check:
    until, seen, wrong = time.monotonic() + _LOOK_S, 0, []
    with read_database(path) as reader:
        threads = reader.checkpointed_threads()
        for thread_id in threads:
            if time.monotonic() > until:
                break
            seen += 1
            wrong += [f"{thread_id}: {phrase}" for phrase in reader.inconsistencies(thread_id)[:1]]
    if wrong:
        return Check("projections", ok=False, detail=_listed(wrong, "; "), hint=f"{_REPAIR} derives them anew")
    compared = f"{seen} threads" if seen == len(threads) else f"{seen} of {len(threads)} threads"
    return Check("projections", ok=True, detail=f"list, transcript and ledger of {compared} say what was stored")


def _shells(path: Path, health: Health | None) -> Check:
    if health is None:
        return Check("shells", ok=True, detail="nothing is known of any")
    try:
        with read_database(path) as reader:
            running = reader.shells()
            lost = {one.thread_id for one in running if reader.thread(one.thread_id).holder is None}
    except AgentError as error:
        return Check("shells", ok=False, detail=str(error), hint=_REPAIR, matters=False)
    if not running:
        return Check("shells", ok=True, detail="none runs in the background")
    named = _listed((f"{one.shell_id} (pid {one.pid}, thread {one.thread_id})" for one in running), ", ")
    hint = f"graph-agent resume {shlex.quote(min(lost))} takes up what its thread left running" if lost else ""
    return Check("shells", ok=not lost, detail=f"in the background: {named}", hint=hint, matters=False)


def _size(path: Path) -> Check:
    log = _bytes(path.with_name(f"{path.name}-wal"))
    parts = [f"database {_megabytes(_bytes(path))}", f"log {_megabytes(log)}"]
    for kind, folder in (("blobs", "objects"), ("spools", "spool")):
        files = [Path(where) / name for where, _, names in os.walk(blob_dir(path) / folder) for name in names]
        parts.append(f"{len(files)} {kind} {_megabytes(sum(map(_bytes, files)))}")
    if log > _MUCH_LOG_BYTES:
        hint = f"{_REPAIR} writes the log into the database, once nobody reads it"
        return Check("size", ok=False, detail=", ".join(parts), hint=hint, matters=False)
    return Check("size", ok=True, detail=", ".join(parts))


def _privacy(path: Path, folders: list[Path]) -> Check:
    exposed, others = exposed_files(path, folders), files_of_other_users(path, folders)
    if others:
        detail = f"another user owns {_listed([shlex.quote(str(one)) for one in others], ' ')}"
        return Check("privacy", ok=False, detail=detail, hint="give them to you with chown", matters=False)
    if not exposed:
        return Check("privacy", ok=True, detail="nobody else can read what the agent keeps")
    named = [shlex.quote(str(found)) for found in exposed]
    hint = f"chmod go= {' '.join(named)}" if len(named) <= 3 else _REPAIR
    return Check("privacy", ok=False, detail=f"others can read {_listed(named, ' ')}", hint=hint, matters=False)


def _space(path: Path) -> Check:
    place = _existing(path.parent)
    free = shutil.disk_usage(place).free
    detail = f"{free // (1024 * 1024)} MB free at {place}"
    return Check("space", free >= _LEAST_FREE_BYTES, detail, "" if free >= _LEAST_FREE_BYTES else "make room")


def _file_system(path: Path) -> Check:
    mount = mount_of(_existing(path.parent))
    if mount is None:
        return Check("filesystem", ok=True, detail="not known")
    if mount.is_network:
        hint = "name a local file with --db or GRAPH_AGENT_DB: locks and the log are not safe between machines"
        detail = f"{mount.kind}, a network file system, at {mount.place}"
        return Check("filesystem", ok=False, detail=detail, hint=hint, matters=False)
    return Check("filesystem", ok=True, detail=f"{mount.kind} at {mount.place}")


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), Path("/"))


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _listed(found: Iterable[str], between: str) -> str:
    named = list(found)
    more = f"{between}and {len(named) - 3} more" if len(named) > 3 else ""
    return between.join(named[:3]) + more


def check_web_search(settings: SearchSettings, environment: Mapping[str, str]) -> Check:
    """Whether the web can be searched, as far as that shows without asking."""
    if settings.provider is None:
        return Check("web search", ok=True, detail="not set up, so it is not offered: setting web_search.provider")
    missing = missing_search_setting(settings, environment)
    if missing:
        return Check("web search", ok=False, detail=f"{settings.provider} lacks {missing}", matters=False)
    address = display_url(SearchProvider(settings.provider, settings.url or "").address)
    return Check("web search", ok=True, detail=f"{settings.provider} at {address}")


_MODEL_WAIT_S = 5.0
_PROGRAM_WAIT_S = 5.0
_MORE = "names that decide what runs later would be protected in the workspace too, and no process stay behind"


def run_checks(database: Path, environment: Mapping[str, str]) -> list[Check]:
    """Every check, in the order in which they are shown. Takes seconds at most, whatever hangs."""
    checks: tuple[Callable[[], Check], ...] = (
        _versions,
        lambda: _settings(environment),
        _trust,
        _plugins,
        lambda: _model(environment),
        lambda: _program("search", find_ripgrep(), "searching falls back to a slower way with the same results"),
        _parser,
        lambda: _program("git", find_program("git"), "install git; the agent works without it"),
        lambda: _sandbox(environment),
        lambda: _search(environment),
        _servers,
    )
    return [*(check() for check in checks), *check_disk(database, environment), _terminal()]


def _versions() -> Check:
    named = {"graph-agent": version("graph-agent"), "Python": platform.python_version()}
    versions = ", ".join(f"{name} {number}" for name, number in {**named, "SQLite": SQLITE_VERSION}.items())
    return Check("versions", ok=True, detail=f"{versions}, {platform.system()} {platform.machine()}")


def _settings(environment: Mapping[str, str]) -> Check:
    try:
        settings = load_settings(environment)
    except ConfigError as error:
        return Check("settings", ok=False, detail=str(error), hint="see: graph-agent config path")
    count = len(settings.origins)
    return Check("settings", ok=True, detail=f"mode {settings.mode}, {count} value{'s' if count != 1 else ''} set")


def _trust() -> Check:
    try:
        ignored = "; ".join(project_notices(project_at(Path.cwd())))
    except (ConfigError, StorageError) as error:
        return Check("trust", ok=False, detail=str(error), matters=False)
    return Check("trust", ok=True, detail=ignored or "nothing in this folder is ignored")


def _plugins() -> Check:
    """Imports them, as a chat does."""
    try:
        registry, problems = full_registry(Path.cwd(), settings_at(Path.cwd()))
    except (ConfigError, StorageError):
        return Check("plug-ins", ok=False, detail="not known while the settings cannot be read", matters=False)
    names = ", ".join(name for name in registry.names() if registry.origin(name) == "plugin")
    if problems:
        left_out = "; ".join(problems)
        return Check("plug-ins", ok=False, detail=f"left out: {left_out}", hint="fix or remove it", matters=False)
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
        return Check("model", ok=ok, detail=choice.reason, hint=CONNECT_HELP, matters=False)
    if choice.kind == "local":
        return Check("model", ok=True, detail=choice.reason)
    return _endpoint(settings.model)


def _endpoint(model: ModelSettings) -> Check:
    """Asks for the list of models, which costs nothing; the key goes there and nowhere else."""
    headers = {name: value.get_secret_value() for name, value in model.headers.items()}
    if model.api_key is not None:
        headers["Authorization"] = f"Bearer {model.api_key.get_secret_value()}"
    address = display_url(model.endpoint)
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
    walls = sandbox_status(sandbox_of(settings, Path.cwd()))
    if walls.is_active:
        why = f", as {detect_backend().why}" if detect_backend().why else ""
        hint = f"with bubblewrap {_MORE}" if walls.name == "Landlock" else ""
        return Check("sandbox", ok=True, detail=f"{walls.name}{why}: {walls.description}", hint=hint)
    hint = "read commands before you say yes"
    if walls.name == "none":
        hint = f"install bubblewrap (package bubblewrap); until then: {hint}"
    is_fatal = walls.name == "none" and settings.sandbox == "required"
    return Check("sandbox", ok=not is_fatal, detail=f"{walls.name}: {walls.description}", hint=hint)


def _search(environment: Mapping[str, str]) -> Check:
    try:
        return check_web_search(load_settings(environment).web_search, environment)
    except ConfigError:
        return Check("web search", ok=False, detail="not known while the settings cannot be read", matters=False)


def _servers() -> Check:
    try:
        servers = configured_servers()
    except (ConfigError, StorageError):
        detail = "not known while the settings cannot be read"
        return Check("mcp servers", ok=False, detail=detail, matters=False)
    problems = [
        f"{server.name}: {server.problem or 'not trusted'}" for server in servers if needs_attention(server)
    ]
    ready = sum(server.state == "ready" for server in servers)
    detail = "; ".join([f"{ready} of {len(servers)} would be started" if servers else "none configured", *problems])
    hint = "graph-agent mcp test NAME tries one, mcp trust NAME trusts it" if problems else ""
    return Check("mcp servers", ok=not problems, detail=detail, hint=hint, matters=False)


def _terminal() -> Check:
    size = shutil.get_terminal_size()
    encoding = sys.stdout.encoding or "unknown"
    kind = "a terminal" if sys.stdout.isatty() else "no terminal"
    detail = f"{kind}, TERM={os.environ.get('TERM', '')}, {size.columns}x{size.lines}, {encoding}"
    is_fit = encoding.lower().replace("-", "") == "utf8"
    hint = "" if is_fit else "set a UTF-8 locale, e.g. LC_ALL=C.UTF-8"
    return Check("terminal", ok=is_fit, detail=detail, hint=hint, matters=False)
