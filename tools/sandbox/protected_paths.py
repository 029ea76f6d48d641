"""Finds the protected names that are there in a writable folder. Looks at names only, a little way down.

Keeps protected names from coming to be where they are absent, and leaves no trace of how.

A name is closed by something empty that stands in its place while commands run: for a file an unreadable socket,
which version control and archives pass over; for a folder an empty one that cannot be written. It is taken away
again when the last command in the folder has ended. What a process that died left standing is recognised and taken
away later.

What of a repository's own folder runs programs later, and what has to stay writable for a commit.

Knows Git's layout of files; runs no Git.

Where keys lie in a home folder and in the system: what no command needs to see to do its work.

A thread's own folder for temporary files: the same for all its commands, and seen by nobody else's.

It outlives the process, so that a command after a resume finds what one before it left, and goes when it is old.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path

from tools.sandbox.mounts import Mount, ProtectedNames, is_folder, path_exists

__all__ = [
    "WATCHED_NAMES",
    "WatchedPath",
    "closed",
    "empty_file",
    "key_stores",
    "private_folder",
    "protected_mounts",
    "put_back",
    "remove_stale_placeholders",
    "repository_mounts",
    "watched_paths",
]

WATCHED_NAMES = ("config", "hooks", "config.worktree", "commondir")
"""What may not come to be in a repository's folder where it is absent. Nothing can stand in its place meanwhile:
Git would stumble over it."""
_MOST = 64
"""So many submodules and worktrees are looked at."""
_BACK = re.compile(r"^\s*worktree\s*=\s*\"?(.*?)\"?\s*$", re.MULTILINE)


def repository_mounts(path: Path) -> Iterator[Mount]:
    """Mounts for `.git`, be it the folder itself or the file of a worktree or submodule that names it."""
    if path.is_dir():
        yield from _folder(path)
        return
    yield Mount(path, "read")
    real = _named_by(path)
    if real is None:
        return
    common = _common(real)
    yield from _folder(common)
    if real != common:
        yield from _folder(real)


def _folder(folder: Path) -> Iterator[Mount]:
    # A mount of its own, as what is mounted on can be neither moved away nor replaced.
    yield Mount(folder, "write")
    for name in WATCHED_NAMES:
        if (folder / name).exists():
            yield Mount(folder / name, "read")
    linked = ("worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir")
    inner = ("modules/**/config", "modules/**/hooks")
    for path in _some(folder, *linked, *inner):
        yield Mount(path, "read")


def _some(folder: Path, *patterns: str) -> list[Path]:
    try:
        return list(islice(chain.from_iterable(folder.glob(pattern) for pattern in patterns), _MOST))
    except OSError:
        return []


def _named_by(pointer: Path) -> Path | None:
    """The folder that a `.git` file names; None unless that folder itself says that it belongs here.

    Such a file may come with anything that was unpacked: by itself it opens no folder for writing.
    """
    text = _text(pointer)
    if not text.startswith("gitdir:"):
        return None
    real = (pointer.parent / text.removeprefix("gitdir:").strip()).resolve()
    back = _text(real / "gitdir")
    if back and Path(real, back).resolve() == pointer:
        return real
    worktree = _BACK.search(_text(real / "config"))
    if worktree and Path(real, worktree[1]).resolve() == pointer.parent:
        return real
    return None


def _common(real: Path) -> Path:
    named = _text(real / "commondir")
    return (real / named).resolve() if named else real


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        return ""


_DEPTH = 3
"""How many levels of folders are looked through."""
_ENTRIES = 3_000
"""How many names are looked at: it happens before every command."""
_MOUNTS = 100
_SKIPPED = frozenset(("node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".mypy_cache"))


def protected_mounts(root: Path, names: ProtectedNames) -> Iterator[Mount]:
    """What of a writable folder is closed because of its name, outermost names first."""
    found = 0
    for path in _protected(root, names):
        for mount in repository_mounts(path) if path.name == ".git" else (Mount(path, "read"),):
            # A link may lead anywhere: outside of the folder nothing can be written as it is.
            if path.name == ".git" or mount.lies_in(root):
                yield mount
                found += 1
        if found >= _MOUNTS:
            return


def _protected(root: Path, names: ProtectedNames) -> Iterator[Path]:
    folders, seen = deque([(root, 0)]), 0
    while folders and seen < _ENTRIES:
        folder, depth = folders.popleft()
        for entry in _entries(folder):
            seen += 1
            path = folder / entry.name
            if names.is_protected(path.relative_to(root)):
                yield path.resolve() if entry.is_symlink() else path
            elif depth < _DEPTH and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                folders.append((path, depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


_SOCKET = stat.S_IFSOCK
_FOLDER = stat.S_IFDIR | 0o555
_READ_BY_GIT = ".gitattributes"
"""Git complains of a socket here and takes an empty folder for nothing."""


@contextmanager
def closed(roots: Sequence[Path], names: ProtectedNames) -> Iterator[list[Path]]:
    """The placeholders that stand while the block runs, in each of the folders that are there."""
    with ExitStack() as held:
        placed = []
        for root in roots:
            if is_folder(root):
                held.enter_context(_held(root, names))
                placed += _place(root, names)
        yield placed


def remove_stale_placeholders(root: Path, names: ProtectedNames) -> None:
    """Take away what a process that died has left, unless others still need it."""
    with contextlib.suppress(OSError), _held(root, names):
        pass


@contextmanager
def _held(root: Path, names: ProtectedNames) -> Iterator[None]:
    """Others who run commands in the folder are known by their lock on it; the last one tidies up."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _tidy(root, names)
    finally:
        os.close(handle)


def _place(root: Path, names: ProtectedNames) -> list[Path]:
    wanted = [(root / name, _FOLDER) for name in names.folders]
    wanted += [(root / name, _FOLDER if name == _READ_BY_GIT else _SOCKET) for name in names.files]
    placed = []
    for path, mode in wanted:
        # Where it cannot be made, the command could not make it either; or the file system has no such thing.
        with contextlib.suppress(OSError):
            if not _is_placeholder(path, mode):
                _make(path, mode)
            placed.append(path)
    return placed


def _make(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        path.mkdir(mode=0o755)
        path.chmod(0o555)
    else:
        os.mknod(path, mode)


def _tidy(root: Path, names: ProtectedNames) -> None:
    for name in (*names.folders, *names.files):
        path = root / name
        with contextlib.suppress(OSError):
            if _is_placeholder(path, _FOLDER):
                path.rmdir()
            elif _is_placeholder(path, _SOCKET):
                path.unlink()


def _is_placeholder(path: Path, mode: int) -> bool:
    """Whether it is one of ours: nobody else makes an unreadable socket, or an empty folder closed to its owner."""
    try:
        found = path.lstat()
        is_ours = found.st_mode == mode and found.st_uid == os.geteuid()
        return is_ours and (mode != _FOLDER or not any(path.iterdir()))
    except OSError:
        return False


@dataclass(frozen=True)
class WatchedPath:
    """A name nothing can be mounted on, looked at before and after."""

    path: Path
    target: str | None
    """Of a link, where it leads; None: it is absent."""

    def has_changed(self) -> bool:
        """Whether it is not as it was."""
        return _link(self.path) != self.target if self.target is not None else os.path.lexists(self.path)


def watched_paths(roots: Sequence[Path], names: ProtectedNames, folders: Sequence[Path]) -> list[WatchedPath]:
    """Links under protected names at the top of each root, and what is absent there and in repositories."""
    tops = [root / name for root in roots for name in (*names.folders, *names.files, *names.others)]
    links = [WatchedPath(path, target) for path in tops if (target := _link(path)) is not None]
    looked_at = [root / name for root in roots for name in names.others]
    looked_at += [folder / name for folder in folders for name in WATCHED_NAMES]
    return [*links, *(WatchedPath(path, None) for path in looked_at if not os.path.lexists(path))]


def put_back(wires: Sequence[WatchedPath]) -> tuple[Path, ...]:
    """Make everything as it was once the command and all its processes have ended; returns what was not."""
    torn = [wire for wire in wires if wire.has_changed()]
    for wire in torn:
        with contextlib.suppress(OSError):
            _remove(wire.path)
            if wire.target is not None:
                wire.path.symlink_to(wire.target)
    return tuple(wire.path for wire in torn)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _link(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - text in, text out
    except OSError:
        return None


_AT_HOME = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".password-store",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".local/share/keyrings",
    ".local/share/fish/fish_history",
    ".local/share/opencode",
)
_AT_CONFIG = (
    "gcloud",
    "gh",
    "glab-cli",
    "hub",
    "git/credentials",
    "op",
    "1Password",
    "Bitwarden",
    "keepassxc",
    "sops",
    "rclone",
    "doctl",
    "pip/pip.conf",
    "google-chrome",
    "chromium",
    "BraveSoftware",
    "containers/auth.json",
)
_OF_THE_SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
)


def key_stores(home: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Those that exist, each as what it really is: a link may lead elsewhere."""
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    named = (*(home / name for name in _AT_HOME), *(config / name for name in _AT_CONFIG))
    found = (*named, *map(Path, _OF_THE_SYSTEM), *_host_keys())
    return tuple(dict.fromkeys(path.resolve() for path in found if path_exists(path)))


def _host_keys() -> Iterator[Path]:
    try:
        yield from Path("/etc/ssh").glob("ssh_host_*_key")
    except OSError:
        return


_KEPT_S = 10 * 24 * 3600
_EMPTY = ".empty"


def private_folder(name: str) -> Path:
    """The folder for what goes by this name; it exists."""
    base = _base()
    folder = base / sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
    if not folder.exists():
        _drop_old(base)
        folder.mkdir(mode=0o700, exist_ok=True)
    os.utime(folder)
    return folder


def empty_file() -> Path:
    """A file with nothing in it, shown in place of one that holds a key."""
    path = _base() / _EMPTY
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o444))
    return path


def _base() -> Path:
    """A folder that is this user's alone, whoever else may write beside it."""
    base = Path(tempfile.gettempdir()).resolve() / f"graph-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{base} is not a folder of yours alone (mode 0700); remove it")
    return base


def _drop_old(base: Path) -> None:
    for folder in base.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
