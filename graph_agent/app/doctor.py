"""Check settings, model, tools, sandbox, database and disk, and say how to fix what does not work."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx

from graph_agent.app.mcp_servers import configured_servers
from graph_agent.app.project_trust import project_at, project_notices, settings_at, used_files
from graph_agent.app.reader import read_database
from graph_agent.app.toolset import (
    exclude_writable_folders,
    full_registry,
    missing_search_setting,
    rules_of,
    sandbox_of,
    sandbox_status,
    unenforced_rules,
)
from graph_agent.config.model_choice import CONNECT_HELP, choose_model, display_url
from graph_agent.config.paths import ServerPath, blob_dir, capabilities_file, data_dir, database_path, lock_dir
from graph_agent.config.settings import SearchSettings, Settings
from graph_agent.config.sources import load_settings
from graph_agent.errors import AgentError, ConfigError, DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.model.openai.capabilities import CapabilityStore
from graph_agent.storage import require_driver, server_use
from graph_agent.storage.private_files import exposed_files, files_of_other_users
from graph_agent.storage.sqlite.database_file import REMEDY, REMEDY_IF_EMPTY
from graph_agent.storage.sqlite.health import SQLITE_VERSION, Health, back_up, check_database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.wording import format_count
from policy import Unparsable
from tools.file_ops.grep_engine import find_ripgrep
from tools.programs import find_program, missing_reason
from tools.proxies import ProxyUnusable, proxy_for
from tools.sandbox import detect_backend
from tools.shell_ops.bash_parser import find_shfmt, parse_bash
from tools.web_ops.web_search import SearchProvider

if TYPE_CHECKING:
    from graph_agent.storage.postgres.copying import DatabaseCopy

__all__ = [
    "Check",
    "Mount",
    "back_up",
    "check_disk",
    "check_web_search",
    "copy_database",
    "mount_of",
    "own_folders",
    "run_checks",
    "run_update",
]

_MIN_FREE_BYTES = 100 * 1024 * 1024
_MAX_LOG_BYTES = 64 * 1024 * 1024
_COMPARE_S = 5.0
"""How long threads are compared with their checkpoints; the most recent ones first."""
_MODEL_TIMEOUT_S = 5.0
_PROGRAM_TIMEOUT_S = 5.0
_REPAIR = "graph-agent doctor --repair"
_BACKUP = "restore a copy made by `doctor --backup FILE`, after removing the -wal and -shm files beside it"
_UNKNOWN = "not known until the settings can be read"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do; empty if there is nothing to do."""
    matters: bool = True
    """Whether the agent needs it in order to work."""


def run_checks(database: Path, environment: Mapping[str, str]) -> list[Check]:
    """Run every check, in the order in which they are shown. Each has a time limit, so it takes seconds at most."""
    settings: Settings | None = None
    try:
        loaded = load_settings(environment)
        exclude_writable_folders(loaded, Path.cwd())
        rules_of(loaded)
        settings = loaded
        count = len(settings.origins)
        detail = f"mode {settings.mode}, {format_count(count, 'value')} set"
        of_settings = Check("settings", ok=True, detail=detail)
    except ConfigError as error:
        of_settings = Check("settings", ok=False, detail=str(error), hint="see: graph-agent config path")
    versions = {
        "graph-agent": version("graph-agent"),
        "Python": platform.python_version(),
        "SQLite": SQLITE_VERSION,
    }
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    return [
        Check("versions", ok=True, detail=f"{named}, {platform.system()} {platform.machine()}"),
        of_settings,
        _check_trust(),
        _check_plugins(),
        _check_model(settings),
        _check_program("search", "rg", find_ripgrep(), "search works without it, more slowly"),
        _check_parser(),
        _check_program("git", "git", find_program("git"), "install git; the agent works without it"),
        _check_sandbox(settings),
        *_check_deny_rules(settings),
        check_web_search(settings.web_search, environment)
        if settings
        else Check("web search", ok=False, detail=_UNKNOWN, matters=False),
        _check_servers(),
        *check_disk(database, environment),
        _check_terminal(),
    ]


def _check_trust() -> Check:
    try:
        project = project_at(Path.cwd())
        ignored = "; ".join(project_notices(project)) or "nothing in this folder is ignored"
    except (ConfigError, StorageError) as error:
        return Check("trust", ok=False, detail=str(error), matters=False)
    used = used_files(project)
    return Check("trust", ok=True, detail=f"in use: {used}; {ignored}" if used else ignored)


def _check_plugins() -> Check:
    """Import the plug-ins, as a chat does."""
    try:
        registry, problems = full_registry(Path.cwd(), settings_at(Path.cwd()))
    except (ConfigError, StorageError):
        return Check("plug-ins", ok=False, detail=_UNKNOWN, matters=False)
    if problems:
        detail = f"left out: {'; '.join(problems)}"
        return Check("plug-ins", ok=False, detail=detail, hint="fix or remove it", matters=False)
    names = ", ".join(name for name in registry.names() if registry.origin(name) == "plugin")
    return Check("plug-ins", ok=True, detail=names or "none")


def _check_model(settings: Settings | None) -> Check:
    if settings is None:
        return Check("model", ok=False, detail=_UNKNOWN, hint="correct them")
    choice = choose_model(settings)
    match choice.kind:
        case "endpoint":
            return _check_endpoint(settings)
        case "offline":
            is_ok = not choice.obstacle
            return Check("model", ok=is_ok, detail=choice.reason, hint=CONNECT_HELP, matters=False)
        case "factory" | "local":
            return Check("model", ok=True, detail=choice.reason)


def _check_endpoint(settings: Settings) -> Check:
    """Request the list of models, which costs nothing; the key is sent only to this address."""
    model = settings.model
    headers = {name: value.get_secret_value() for name, value in model.headers.items()}
    if model.api_key is not None:
        headers["Authorization"] = f"Bearer {model.api_key.get_secret_value()}"
    address = display_url(model.endpoint)
    try:
        proxy = proxy_for(model.endpoint)
    except ProxyUnusable as error:
        return Check("model", ok=False, detail=f"{address} cannot be reached", hint=str(error))
    try:
        with (
            httpx.Client(proxy=proxy, trust_env=False, verify=httpx.create_ssl_context()) as client,
            # The body is not read: a server may never stop sending it.
            client.stream("GET", f"{model.endpoint}/models", headers=headers, timeout=_MODEL_TIMEOUT_S) as answer,
        ):
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        hint = "is the server running? Its address is set by model.base_url (GRAPH_AGENT_BASE_URL)"
        through = f" through the proxy {display_url(proxy)}" if proxy else ""
        reason = str(error) or type(error).__name__
        return Check("model", ok=False, detail=f"{address} cannot be reached{through}: {reason}", hint=hint)
    if status in (401, 403):
        hint = "the key is set by model.api_key (OPENAI_API_KEY)"
        return Check("model", ok=False, detail=f"{address} rejects the key ({status})", hint=hint)
    if status >= 500:
        return Check("model", ok=False, detail=f"{address} fails ({status})", hint="check the server")
    learned = CapabilityStore(capabilities_file(settings.database)).load(model.endpoint, model.name or "")
    problem, hint = learned.problem
    detail = f"{model.name or 'no model named'} at {address}, answered {status}"
    detail += f", but {problem}" if problem else "; `graph-agent model test` tests the rest"
    return Check("model", ok=not problem, detail=detail, hint=hint, matters=not learned.calls_tools)


def _check_program(name: str, wanted: str, program: str | None, without: str) -> Check:
    if program is None:
        return Check(name, ok=False, detail=missing_reason(wanted), hint=without, matters=False)
    try:
        done = subprocess.run(
            # Not in the current folder, whose files could change what runs.
            [program, "--version"],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_PROGRAM_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        detail = f"{program} does not run: {type(error).__name__}"
        return Check(name, ok=False, detail=detail, hint=without, matters=False)
    first = done.stdout.strip().split("\n")[0]
    return Check(name, ok=done.returncode == 0, detail=f"{program}: {first}", matters=False)


def _check_parser() -> Check:
    """Parse a text, to notice another program of the same name."""
    without = "without it every shell command needs approval"
    found = _check_program("parser", "shfmt", find_shfmt(), without)
    if not found.ok:
        return found
    try:
        if parse_bash("echo one && cat < two > three").get("Stmts"):
            return found
        problem = "but this program cannot read its syntax trees"
    except Unparsable as error:
        problem = f"but it cannot parse a command: {error}"
    return replace(found, ok=False, detail=f"{found.detail}, {problem}", hint=without)


def _check_sandbox(settings: Settings | None) -> Check:
    if settings is None:
        return Check("sandbox", ok=False, detail=_UNKNOWN, hint="correct them")
    status = sandbox_status(sandbox_of(settings, Path.cwd()))
    if status.is_active:
        reason = f", as {detect_backend().why}" if detect_backend().why else ""
        hint = (
            "bubblewrap also protects files of the workspace that decide what runs later, and leaves no process "
            "behind"
        )
        detail = f"{status.name}{reason}: {status.description}"
        return Check("sandbox", ok=True, detail=detail, hint=hint if status.name == "Landlock" else "")
    hint = "read commands before you approve them"
    if status.name == "none":
        hint = f"install bubblewrap (package bubblewrap); until then: {hint}"
    is_fatal = status.name == "none" and settings.sandbox == "required"
    return Check("sandbox", ok=not is_fatal, detail=f"{status.name}: {status.description}", hint=hint)


def _check_deny_rules(settings: Settings | None) -> Iterator[Check]:
    """A line only if the sandbox cannot fully enforce one."""
    if unenforced := unenforced_rules(settings, Path.cwd()) if settings else ():
        detail = "; ".join(f"{rule}: {reason}" for rule, reason in unenforced)
        hint = "commands may get past these rules, for the reasons above"
        yield Check("deny rules", ok=False, detail=detail, hint=hint, matters=False)


def check_web_search(settings: SearchSettings, environment: Mapping[str, str]) -> Check:
    """Whether web search is configured; sends no request."""
    if settings.provider is None:
        return Check("web search", ok=True, detail="not configured (setting web_search.provider)")
    if missing := missing_search_setting(settings, environment):
        return Check("web search", ok=False, detail=f"{settings.provider} lacks {missing}", matters=False)
    provider = SearchProvider(settings.provider, settings.url or "", shown=display_url(settings.url or ""))
    return Check("web search", ok=True, detail=f"{settings.provider} at {provider.shown_address}")


def _check_servers() -> Check:
    try:
        servers = configured_servers()
    except (ConfigError, StorageError):
        return Check("mcp servers", ok=False, detail=_UNKNOWN, matters=False)
    problems = [f"{server.name}: {server.problem or 'not trusted'}" for server in servers if server.needs_attention]
    problems += [server.refusal for server in servers if server.refusal]
    ready = sum(server.state == "will_start" for server in servers)
    detail = "; ".join([f"{ready} of {len(servers)} can start" if servers else "none configured", *problems])
    hint = "graph-agent mcp test NAME tests one; graph-agent mcp trust NAME trusts it" if problems else ""
    return Check("mcp servers", ok=not problems, detail=detail, hint=hint, matters=False)


def _check_terminal() -> Check:
    size = shutil.get_terminal_size()
    encoding = sys.stdout.encoding or "unknown"
    kind = "a terminal" if sys.stdout.isatty() else "no terminal"
    detail = f"{kind}, TERM={os.environ.get('TERM', '')}, {size.columns}x{size.lines}, {encoding}"
    is_utf8 = encoding.lower().replace("-", "") == "utf8"
    hint = "" if is_utf8 else "set a UTF-8 locale, e.g. LC_ALL=C.UTF-8"
    return Check("terminal", ok=is_utf8, detail=detail, hint=hint, matters=False)


def check_disk(path: Path, environment: Mapping[str, str]) -> list[Check]:
    """Every check of the database and the disk, in the order in which they are shown."""
    if isinstance(path, ServerPath):
        return _check_server(path, environment)
    health, of_database = _check_database(path)
    return [
        of_database,
        _check_schema(health),
        _check_rows(path, health),
        _check_projections(path, health),
        _check_shells(path, health),
        _check_early_requests(path, health),
        _check_size(path),
        _check_privacy(path, own_folders(path, environment)),
        _check_space(path),
        _check_file_system(path),
    ]


def _check_server(path: ServerPath, environment: Mapping[str, str]) -> list[Check]:
    """The checks of a database on a server, and of the disk for what stays on this host."""
    health, server_checks = None, []
    try:
        with read_database(path) as reader:
            count = len(reader.threads())
        use = server_use(path)
        server_checks = [Check("server", ok=not use.advice, detail=use.summary, hint=use.advice)]
        health = Health(SCHEMA_VERSION, count, (), has_search_index=True)
        of_database = Check("database", ok=True, detail=f"{path}: can be read, {format_count(count, 'thread')}")
    except NothingYet:
        of_database = Check(
            "database", ok=True, detail=f"{path} holds nothing yet; the first chat creates its tables"
        )
    except AgentError as error:
        of_database = Check("database", ok=False, detail=str(error), hint="see docs/scale-out.md")
    return [
        of_database,
        *server_checks,
        _check_schema(health),
        _check_rows(path, health),
        _check_projections(path, health),
        _check_shells(path, health),
        _check_privacy(path, own_folders(path, environment)),
        _check_space(path),
    ]


async def copy_database(source: str, target: str) -> "DatabaseCopy":
    """Copy a database into an empty one; each is a file or a URL. See `copying.copy_database`."""
    require_driver()
    from graph_agent.storage.postgres.copying import copy_database as copy  # noqa: PLC0415 - few have a server

    return await copy(database_path(os.environ, source), database_path(os.environ, target))


def own_folders(database: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders that the agent made for itself; the folder of a database elsewhere is not its own."""
    try:
        home = data_dir(environment)
    except RuntimeError:
        return []
    return [home, home / "logs"] if home == database.parent else [home / "logs"]


def _check_database(path: Path) -> tuple[Health | None, Check]:
    try:
        health = check_database(path)
        if health is not None:
            read_database(path).close()  # It notices pages that are missing at the end.
            _require_writable(path)
            detail = f"{path}: sound, {format_count(health.threads, 'thread')}"
            return health, Check("database", ok=True, detail=detail)
    except NothingYet:
        pass
    except (StorageError, OSError) as error:
        match error:
            case NewerSchema():
                hint = "update graph-agent"
            case DamagedDatabase() if REMEDY_IF_EMPTY in str(error):
                hint = REMEDY_IF_EMPTY
            case DamagedDatabase() if path.exists():
                hint = f"{_REPAIR} copies what is readable to a new file and keeps this one; or {_BACKUP}"
            case DamagedDatabase():
                hint = _BACKUP
            case _:
                hint = (
                    "check the owner and permissions of the file and its folder, or choose another file with --db"
                )
        detail = str(error).removesuffix(f"; {REMEDY}.").removesuffix(f"; {REMEDY_IF_EMPTY}.")
        return None, Check("database", ok=False, detail=detail, hint=hint)
    place = _existing(path.parent)
    if not os.access(place, os.W_OK | os.X_OK):
        hint = "choose a folder that you can write to: --db FILE, GRAPH_AGENT_DB or GRAPH_AGENT_HOME"
        detail = f"{path} cannot be created: {place} is not writable"
        return None, Check("database", ok=False, detail=detail, hint=hint)
    return None, Check("database", ok=True, detail=f"{path} does not exist yet; the first chat creates it")


def _require_writable(path: Path) -> None:
    for folder in (blob_dir(path), lock_dir(path)):
        if folder.exists() and not folder.is_dir():
            raise StorageError(f"{folder} is in the way: the agent needs a folder there. Move it away")
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise StorageError(f"{place} is not writable: threads can be shown, but not continued")


def _check_schema(health: Health | None) -> Check:
    if health is None:
        return Check("schema", ok=True, detail=f"this program writes version {SCHEMA_VERSION}")
    detail = f"version {health.version} of {SCHEMA_VERSION}"
    if not health.has_search_index:
        detail += "; this SQLite has no FTS5, so `threads search` scans every message"
    if health.foreign_tables:
        detail += f"; tables of another program: {', '.join(health.foreign_tables)}"
        return Check("schema", ok=False, detail=detail, hint="they are not used and take up space", matters=False)
    is_old = health.version < SCHEMA_VERSION
    hint = "the next command that writes makes a copy, then migrates it" if is_old else ""
    return Check("schema", ok=True, detail=detail, hint=hint)


def _check_rows(path: Path, health: Health | None) -> Check:
    if health is None:
        return Check("rows", ok=True, detail="nothing to check")
    try:
        with read_database(path) as reader:
            damaged, lost = reader.damaged_rows(), reader.lost_threads()
    except AgentError as error:
        return Check("rows", ok=False, detail=str(error), hint=_REPAIR)
    if lost:
        detail = f"{format_count(lost, 'thread')} missing from the database, although nobody deleted it"
        hint = f"restore a backup, with the -wal file that belongs to it; {_REPAIR} gives them up"
        return Check("rows", ok=False, detail=_first([detail, *damaged], "; "), hint=hint)
    if damaged:
        detail = f"damaged: {_first(damaged, '; ')}"
        return Check("rows", ok=False, detail=detail, hint=f"{_REPAIR} keeps a copy and repairs what it can")
    return Check("rows", ok=True, detail="all rows are valid")


def _check_projections(path: Path, health: Health | None) -> Check:
    if health is None:
        return Check("projections", ok=True, detail="nothing to compare")
    until, compared = time.monotonic() + _COMPARE_S, 0
    wrong: list[str] = []
    try:
        with read_database(path) as reader:
            threads = reader.checkpointed_threads()
            for thread_id in threads:
                if time.monotonic() > until:
                    break
                compared += 1
                wrong += [f"{thread_id}: {phrase}" for phrase in reader.inconsistencies(thread_id)[:1]]
    except AgentError as error:
        return Check("projections", ok=False, detail=str(error), hint=_REPAIR)
    if wrong:
        return Check("projections", ok=False, detail=_first(wrong, "; "), hint=f"{_REPAIR} rebuilds them")
    number = format_count(len(threads), "thread")
    compared_part = number if compared == len(threads) else f"{compared} of {number}"
    detail = f"thread list, transcripts and call log agree with the checkpoints ({compared_part})"
    return Check("projections", ok=True, detail=detail)


def _check_shells(path: Path, health: Health | None) -> Check:
    if health is None:
        return Check("shells", ok=True, detail="not known")
    try:
        with read_database(path) as reader:
            running = reader.shells()
            lost = {one.thread_id for one in running if reader.thread(one.thread_id).holder is None}
    except AgentError as error:
        return Check("shells", ok=False, detail=str(error), hint=_REPAIR, matters=False)
    if not running:
        return Check("shells", ok=True, detail="none running")
    named = _first([f"{one.shell_id} (pid {one.pid}, thread {one.thread_id})" for one in running], ", ")
    hint = f"graph-agent resume {shlex.quote(min(lost))} reattaches its shells" if lost else ""
    return Check("shells", ok=not lost, detail=f"in the background: {named}", hint=hint, matters=False)


def _check_early_requests(path: Path, health: Health | None) -> Check:
    """Requests that were paid for and not used: the process was killed, or the turn needed another request."""
    unused: list[int] = []
    if health is not None:
        try:
            with read_database(path) as reader:
                unused = reader.unused_requests()
        except AgentError as error:
            return Check("requests", ok=False, detail=str(error), hint=_REPAIR, matters=False)
    if not unused:
        return Check("requests", ok=True, detail="no early request was left unused")
    detail = f"{format_count(len(unused), 'early request')} sent and not used, about {sum(unused):,} tokens"
    hint = 'early_request = "off" turns early requests off'
    return Check("requests", ok=True, detail=detail, hint=hint)


def _check_size(path: Path) -> Check:
    log = _bytes(path.with_name(f"{path.name}-wal"))
    parts = [f"database {_bytes(path) / 1e6:.1f} MB", f"log {log / 1e6:.1f} MB"]
    for kind, folder in (("blobs", "objects"), ("spools", "spool")):
        files = [Path(where) / name for where, _, names in os.walk(blob_dir(path) / folder) for name in names]
        parts.append(f"{len(files)} {kind} {sum(map(_bytes, files)) / 1e6:.1f} MB")
    if log > _MAX_LOG_BYTES:
        hint = f"{_REPAIR} writes the log into the database when nobody reads it"
        return Check("size", ok=False, detail=", ".join(parts), hint=hint, matters=False)
    return Check("size", ok=True, detail=", ".join(parts))


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _check_privacy(path: Path, folders: list[Path]) -> Check:
    if others := files_of_other_users(path, folders):
        detail = f"another user owns {_first([shlex.quote(str(one)) for one in others], ' ')}"
        return Check("privacy", ok=False, detail=detail, hint="change the owner with chown", matters=False)
    exposed = [shlex.quote(str(one)) for one in exposed_files(path, folders)]
    if not exposed:
        return Check("privacy", ok=True, detail="nobody else can read the agent's files")
    hint = f"chmod go= {' '.join(exposed)}" if len(exposed) <= 3 else _REPAIR
    return Check("privacy", ok=False, detail=f"others can read {_first(exposed, ' ')}", hint=hint, matters=False)


def _check_space(path: Path) -> Check:
    place = _existing(path.parent)
    free = shutil.disk_usage(place).free
    is_enough = free >= _MIN_FREE_BYTES
    detail = f"{free // (1024 * 1024)} MB free at {place}"
    return Check("space", ok=is_enough, detail=detail, hint="" if is_enough else "free some space")


def _check_file_system(path: Path) -> Check:
    mount = mount_of(_existing(path.parent))
    if mount is None:
        return Check("filesystem", ok=True, detail="not known")
    if mount.is_network:
        hint = "choose a local file with --db or GRAPH_AGENT_DB: locks do not work between machines"
        detail = f"{mount.kind}, a network file system, at {mount.place}"
        return Check("filesystem", ok=False, detail=detail, hint=hint, matters=False)
    return Check("filesystem", ok=True, detail=f"{mount.kind} at {mount.place}")


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), Path("/"))


def _first(names: Sequence[str], separator: str) -> str:
    """The first three of the names, and how many more there are."""
    more = [f"and {len(names) - 3} more"] if len(names) > 3 else []
    return separator.join([*names[:3], *more])


_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK_KINDS = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs"),
    *("ocfs2", "smb", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs"),
    "fuse.nfs",
)
"""Beginnings of the kinds that several machines may see at once, or that another machine stores."""


class Mount(NamedTuple):
    """A file system and where it is mounted."""

    place: Path
    kind: str

    @property
    def is_network(self) -> bool:
        """Whether it is another machine's."""
        return self.kind.startswith(_NETWORK_KINDS)


def mount_of(folder: Path, mounts: Path = _MOUNTS) -> Mount | None:
    """The file system of a folder, from a file like /proc/self/mountinfo; None if it cannot be found out."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        real = folder.resolve()
    except OSError:
        return None
    best: Mount | None = None
    for line in lines:
        # Fields, of which the fifth is the place, then a lone dash and the kind.
        fields, _, about = line.partition(" - ")
        parts, kind = fields.split(), about.split()
        if len(parts) < 5 or not kind:
            continue
        # Blanks and the like are written as their number in base eight.
        place = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), parts[4]))
        # Of several at one place the last one hides the others.
        if real.is_relative_to(place) and (best is None or len(place.parts) >= len(best.place.parts)):
            best = Mount(place, kind[0])
    return best


def run_update(command: Sequence[str]) -> int | None:
    """Run a command in this terminal; its exit code, None if there is no such program."""
    program = find_program(command[0])
    return None if program is None else subprocess.run([program, *command[1:]], check=False).returncode
