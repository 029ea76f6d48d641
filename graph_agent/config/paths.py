"""Where the agent keeps its own files, and how they are read and replaced safely.

Standard library only: read-only commands load no more of the settings.
"""

import fcntl
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from graph_agent.errors import ConfigError

__all__ = [
    "ServerPath",
    "agent_paths",
    "blob_dir",
    "capabilities_file",
    "config_dir",
    "data_dir",
    "database_path",
    "folder_at",
    "lock_dir",
    "locked_folder",
    "make_private_folder",
    "memory_file",
    "named_database",
    "own_command",
    "pasted_dir",
    "plain_text",
    "read_plain_text",
    "replace_text",
    "runnable_hints",
    "special_file_kind",
]

_NAME = "graph-agent"
_ODD_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SERVER_SCHEMES = ("postgresql", "postgres")
_SERVER_LIKE = re.compile(r"\s*postgres(?:ql)?:", re.IGNORECASE)


class ServerPath(PosixPath):
    """A database on a server. As text it is the URL without its password.

    As a path it names a place in the data folder. This host keeps the files that belong to the database beside it:
    the output of running calls, and the capabilities of endpoints.
    """

    url: str = ""

    @classmethod
    def from_url(cls, url: str, folder: Path) -> "ServerPath":
        """The database with this URL; `folder` is for this host's own files about databases on servers.

        Raises:
            ValueError: it is no URL, or a part of it has to be percent-encoded; the message quotes nothing of it.
        """
        import hashlib  # noqa: PLC0415 - a file needs no digest

        parts = urlsplit(url)
        behind = parts.path + parts.fragment + ("" if "@" in parts.netloc else parts.query)
        if "@" in behind:  # What stands before it would be shown, and may be part of a password.
            raise ValueError("in a user or password, write @ as %40, / as %2F, ? as %3F and # as %23")
        given = dict(parse_qsl(parts.query))
        place = (
            parts.netloc.rpartition("@")[2],
            parts.path,
            *(given.get(name) for name in ("host", "port", "dbname")),
        )
        digest = hashlib.sha256(repr(place).encode("utf-8", "replace")).hexdigest()
        path = cls(folder / digest[:16] / "graph-agent.db")
        path.url = url
        return path

    @property
    def password(self) -> str:
        """The password in the URL; empty if there is none."""
        parts = urlsplit(self.url)
        in_query = dict(parse_qsl(parts.query)).get("password", "")
        return unquote(parts.netloc.rpartition("@")[0].partition(":")[2]) or in_query

    def __str__(self) -> str:
        if not self.url:
            return self.__fspath__()
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        query = urlencode([pair for pair in parse_qsl(parts.query) if "password" not in pair[0]], safe="/")
        return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}{'?' if query else ''}{query}"

    def __fspath__(self) -> str:
        return str(super().__str__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


def config_dir(env: Mapping[str, str]) -> Path:
    """Folder of config.toml and CONTEXT.md: GRAPH_AGENT_HOME, else XDG_CONFIG_HOME/graph-agent."""
    if home := env.get("GRAPH_AGENT_HOME"):
        return Path(home).expanduser().absolute()
    return _xdg(env, "XDG_CONFIG_HOME", ".config")


def own_command() -> str:
    """How this program is called from the current folder: by its name, if the user's PATH leads to this one."""
    from tools.programs import first_on_path  # noqa: PLC0415 - as below

    script, named = Path(sys.executable).parent / _NAME, first_on_path(_NAME)
    if not os.path.exists(script):  # noqa: PTH110 - never raises
        return _NAME if named else shlex.join([sys.executable, "-m", "graph_agent"])
    if named and named.resolve() == script.resolve():
        return _NAME
    with suppress(OSError):  # The folder may be gone.
        folder = Path.cwd()
        if script.is_relative_to(folder):
            script = script.relative_to(folder)
    return shlex.quote(str(script))


def runnable_hints(text: str) -> str:
    """A text of this program in which the commands that it recommends can be copied and run here.

    Lower layers name the program by its name; who shows their messages at a terminal calls this.
    """
    if not _HINT.search(text):
        return text
    own = own_command()
    return _HINT.sub(lambda found: f"{found[1]}{own} ", text)


_HINT = re.compile(rf"(^|`|: |; ){_NAME} (?=[a-z])", re.MULTILINE)


def memory_file(env: Mapping[str, str]) -> Path:
    """What the agent is to know in every thread: the user's own words, and what it was told to remember."""
    return config_dir(env) / "CONTEXT.md"


def data_dir(env: Mapping[str, str]) -> Path:
    """Folder of the database and what lies beside it: GRAPH_AGENT_HOME/data, else XDG_DATA_HOME/graph-agent."""
    if home := env.get("GRAPH_AGENT_HOME"):
        return Path(home).expanduser().absolute() / "data"
    return _xdg(env, "XDG_DATA_HOME", ".local/share")


def database_path(env: Mapping[str, str], flag: str | Path | None = None) -> Path:
    """The database: the flag, else GRAPH_AGENT_DB, else the user's setting, else graph-agent.db in the data folder.

    Raises:
        ConfigError: it cannot be one, see `named_database`; or the user's settings are needed and cannot be read.
    """
    if named := flag or env.get("GRAPH_AGENT_DB"):
        return named_database(named, env)
    file = config_dir(env) / "config.toml"
    found = _setting(file, "database")
    return named_database(data_dir(env) / "graph-agent.db" if found is None else found, env, file)


def named_database(named: object, env: Mapping[str, str], file: Path | None = None) -> Path:
    """The database that a flag, a variable or a file with settings names.

    For the URL of a PostgreSQL server a `ServerPath`. Where a file is a link, what it leads to: the log, the locks
    and the blobs are beside the file itself, so the link and the file lead to the same ones.

    Raises:
        ConfigError: it is a URL of another kind, which as a file name would create folders; or the value in `file`
            is neither a path nor a URL, or is a relative path.
    """
    if isinstance(named, ServerPath):
        return named
    source = f"{file}: " if file else ""
    if not isinstance(named, str | Path) or not str(named):
        raise ConfigError(
            f"{source}database = {named!r}: should be a file or a URL such as postgresql://HOST/NAME."
        )
    if isinstance(named, str) and _SERVER_LIKE.match(named) and not _URL.match(named):
        # As a file name it would show its password.
        raise ConfigError(f"{source}The database is not a valid URL. Write postgresql://USER@HOST/NAME.")
    if isinstance(named, str) and (url := _URL.match(named)):
        if url[1] not in _SERVER_SCHEMES:
            raise ConfigError(
                f"{source}The database {url[0]}… is a URL of a kind that is not supported. Name a file, or a "
                "server with postgresql://HOST/NAME."
            )
        try:
            return ServerPath.from_url(named, data_dir(env) / "servers")
        except ValueError as error:
            raise ConfigError(
                f"{source}The database is not a valid URL ({error}). Write postgresql://USER@HOST/NAME."
            ) from None
    path = Path(named).expanduser()
    if file and not path.is_absolute():
        raise ConfigError(
            f"{source}database = {str(named)!r}: should be an absolute path, begin with ~, or be a URL."
        )
    path = path.absolute()
    is_link = os.path.islink(path)  # noqa: PTH114 - of a folder that may not be looked into, the method raises
    return Path(os.path.realpath(path)) if is_link else path


def _setting(file: Path, key: str) -> Any:
    """A top-level value of a settings file, which is parsed only if it contains the key."""
    try:
        text = read_plain_text(file)
    except (OSError, ValueError):  # It is reported when all settings are loaded.
        return None
    if key not in text:
        return None
    import tomllib  # noqa: PLC0415 - few set it

    try:
        return tomllib.loads(text.removeprefix("\ufeff")).get(key)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}. Correct it or move it away.") from None


def pasted_dir(env: Mapping[str, str]) -> Path:
    """Where images are kept that were pasted or dropped into a message; resolved."""
    return Path(os.path.realpath(data_dir(env) / "pasted"))


def blob_dir(database: Path) -> Path:
    """Folder of the blobs that belong to a database file; it lies beside it."""
    return database.with_name(f"{database.name}.blobs")


def capabilities_file(database: Path) -> Path:
    """What endpoints have shown that they take; it lies beside the database."""
    return database.with_name(f"{database.name}.learned.json")


def lock_dir(database: Path) -> Path:
    """Folder of the thread locks that belong to a database file; it lies beside it."""
    return database.with_name(f"{database.name}.locks")


def special_file_kind(path: Path) -> str | None:
    """What stands there in place of a plain file, which reading it might wait for without end."""
    try:
        return _ODD_KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def agent_paths(env: Mapping[str, str], database: Path) -> tuple[Path, ...]:
    """What no tool may write, and no command see: the agent's settings, its database and what lies beside it."""
    beside = (database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))
    files = (database, capabilities_file(database), *beside)
    folders = (config_dir(env), data_dir(env), blob_dir(database), lock_dir(database))
    return tuple(Path(os.path.realpath(path)) for path in (*folders, *files))


def _xdg(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    base = env.get(variable)
    root = Path(base) if base and Path(base).is_absolute() else Path(env.get("HOME") or Path.home()) / fallback
    return root / _NAME


def folder_at(path: str | Path) -> Path | None:
    """The folder at a path that somebody wrote, resolved; None if there is none, or it cannot be looked at."""
    try:
        folder = Path(path).expanduser().resolve()
        return folder if folder.is_dir() else None
    except (OSError, ValueError, RuntimeError):  # Too long, closed to this user; a NUL; the home of nobody.
        return None


def make_private_folder(folder: Path) -> None:
    """Create the folder and what is missing above it, each 0700 whatever the umask; existing ones are left alone.

    Their names survive a power failure.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    parent = os.open(folder.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def read_plain_text(path: Path, *, errors: Literal["strict", "replace"] = "strict") -> str:
    """The text of a file that a person wrote; see `plain_text`.

    Raises:
        OSError: it cannot be read, or is no plain file.
        ValueError: it is neither UTF-8 nor marked as UTF-16 or UTF-32, unless `errors` is "replace".
    """
    if kind := special_file_kind(path):
        raise OSError(f"it is {kind}, not a file")
    return plain_text(path.read_bytes(), errors=errors)


def plain_text(data: bytes, *, errors: Literal["strict", "replace"] = "replace") -> str:
    """The text of bytes as editors write them: UTF-8, or UTF-16 and UTF-32 with a mark, with any line ends.

    With "replace", bytes in another encoding are read as the one that is likely, and a last line says so; a NUL
    becomes the sign for it.

    Raises:
        ValueError: the encoding is another one, and `errors` is "strict".
    """
    try:
        text, guessed = data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        # Loaded late: a command that only reads needs none of the tools, and files are UTF-8 almost always.
        from tools.text import decode  # noqa: PLC0415 - as above

        text, form = decode(data)
        guessed = "" if form.encoding in _UNICODE and form.errors == "strict" else form.encoding
        if guessed and errors == "strict":
            raise
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if errors == "strict":
        return text
    text = text.encode("utf-8", "replace").decode().replace("\0", "␀")
    return f"{text}\n[This text is not UTF-8. It was read as {guessed}.]" if guessed else text


_UNICODE = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make the folder, private, and hold it: of two changes made at once none is to be lost."""
    make_private_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_text(path: Path, text: str) -> None:
    """Put a private new file in the place of the old one; a kill leaves one or the other."""
    import tempfile  # noqa: PLC0415 - commands that only read do without

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
