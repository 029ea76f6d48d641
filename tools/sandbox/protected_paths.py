"""What a sandbox allows, and which paths it closes: protected names, repositories, key stores, temporary folders.

A protected name that is absent is closed by a placeholder while commands run: a file by an unreadable socket, which
version control and archives pass over, a folder by an empty one that cannot be written. The last command in the
folder removes it. A placeholder that a dead process left is recognised and removed later.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

__all__ = [
    "WATCHED_NAMES",
    "Mount",
    "ProtectedNames",
    "SandboxRules",
    "WatchedPath",
    "empty_file",
    "folder_mounts",
    "is_folder",
    "key_stores",
    "links_above",
    "ordered_mounts",
    "path_exists",
    "placeholders",
    "private_folder",
    "protected_mounts",
    "remove_stale_placeholders",
    "repository_mounts",
    "restore",
    "watched_paths",
]


@dataclass(frozen=True)
class ProtectedNames:
    """Names that decide what runs later, or hold keys."""

    is_protected: Callable[[PurePath], bool] = lambda _: False
    """Whether a path, relative to a writable root, must not be written."""
    folders: tuple[str, ...] = ()
    """Folders that must not be created at the top of a writable root either: a placeholder takes their place."""
    files: tuple[str, ...] = ()
    """Files of which the same is true."""
    removed: tuple[str, ...] = ()
    """Names that get no placeholder; they are removed again if they appear there."""


@dataclass(frozen=True)
class SandboxRules:
    """Everything else can be read, and nothing else can be written."""

    writable: tuple[Path, ...]
    """Folders, resolved; the workspace is the first."""
    network: bool = False
    hidden: tuple[Path, ...] = ()
    """Key stores and the agent's own files; those that do not exist are ignored."""
    names: ProtectedNames = field(default_factory=ProtectedNames)
    visible: tuple[Path, ...] = ()
    """What must be visible although it is in a shared temporary folder, which a private one replaces."""
    protected: tuple[Path, ...] = ()
    """Folders in writable ones that cannot be written either, such as those of PATH; as they are named there."""
    memory: int | None = None
    """Bytes that a command may use."""
    processes: int | None = None
    """Processes that a command may have at once."""


MountKind = Literal["write", "read", "empty"]
_STRICTNESS: dict[MountKind, int] = {"write": 0, "read": 1, "empty": 2}


class Mount(NamedTuple):
    """One path and how it appears in the sandbox."""

    path: Path
    kind: MountKind
    """write: as it is; read: as it is, but not writable; empty: without content, and not writable."""
    source: Path | None = None
    """What appears there instead; None for the path itself."""


def ordered_mounts(mounts: list[Mount]) -> Iterator[Mount]:
    """Outer before inner, and of each path only the strictest, so that no mount opens what another one closed."""
    strictest: dict[Path, Mount] = {}
    for mount in mounts:
        known = strictest.get(mount.path)
        if known is None or _STRICTNESS[mount.kind] > _STRICTNESS[known.kind]:
            strictest[mount.path] = mount
    yield from sorted(strictest.values(), key=lambda mount: len(mount.path.parts))


# `Path.exists` raises for a folder that this user may not enter; PATH names such folders after a change of user.


def path_exists(path: Path) -> bool:
    """Whether the path leads to anything, as far as this user may know."""
    return os.path.exists(path)  # noqa: PTH110 - never raises


def is_folder(path: Path) -> bool:
    """Whether the path leads to a folder, as far as this user may know."""
    return os.path.isdir(path)  # noqa: PTH112 - never raises


_MAX_DEPTH = 3
"""How many levels of folders are searched."""
_MAX_ENTRIES = 3_000
"""How many names are looked at, as it happens before every command."""
_MAX_MOUNTS = 100
_SKIPPED = frozenset(("node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".mypy_cache"))


def protected_mounts(root: Path, names: ProtectedNames) -> Iterator[Mount]:
    """What is closed in a writable folder because of its name, outermost names first."""
    found = 0
    for path in _protected_paths(root, names):
        for mount in repository_mounts(path) if path.name == ".git" else (Mount(path, "read"),):
            # A link may lead anywhere, but nothing outside of the folder can be written anyway.
            if path.name == ".git" or mount.path.is_relative_to(root):
                yield mount
                found += 1
        if found >= _MAX_MOUNTS:
            return


def _protected_paths(root: Path, names: ProtectedNames) -> Iterator[Path]:
    folders, seen = deque([(root, 0)]), 0
    while folders and seen < _MAX_ENTRIES:
        folder, depth = folders.popleft()
        for entry in _entries(folder):
            seen += 1
            path = folder / entry.name
            if names.is_protected(path.relative_to(root)):
                yield path.resolve() if entry.is_symlink() else path
            elif depth < _MAX_DEPTH and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                folders.append((path, depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def folder_mounts(folders: Sequence[Path], roots: Sequence[Path]) -> Iterator[Mount]:
    """Close folders in writable ones; each folder above becomes a mount, so that it cannot be moved away."""
    for folder in dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders):
        above = [outer for outer in folder.parents if any(root in outer.parents for root in roots)]
        if is_folder(folder) and any(root in folder.parents for root in roots):
            yield from (Mount(outer, "write") for outer in above)
            yield Mount(folder, "read")


def links_above(folders: Sequence[Path], roots: Sequence[Path]) -> Iterator[Path]:
    """The links in writable folders by which such a folder is reached."""
    for folder in folders:
        for path in (folder, *folder.parents):
            if path.is_symlink() and any(path.is_relative_to(root) for root in roots):
                yield path


# Repositories: what of `.git` runs programs later is closed, what a commit writes stays writable.

WATCHED_NAMES = ("config", "hooks", "config.worktree", "commondir", "rebase-merge", "rebase-apply", "sequencer")
"""What must not appear in a repository's folder; it gets no placeholder, because Git would fail at one.
The last three hold commands that `git rebase --continue` runs."""
_BISECT_NAMES = ("BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS")
_MAX_LINKED = 64
"""How many submodules and worktrees are looked at."""
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*\"?(.*?)\"?\s*$", re.MULTILINE)


def repository_mounts(path: Path) -> Iterator[Mount]:
    """Mounts for `.git`, either the folder itself or the file of a worktree or submodule that names it."""
    if path.is_dir():
        yield from _git_folder_mounts(path)
        return
    yield Mount(path, "read")
    real = _named_git_folder(path)
    if real is None:
        return
    common = _read_text(real / "commondir")
    shared = (real / common).resolve() if common else real
    yield from _git_folder_mounts(shared)
    if real != shared:
        yield from _git_folder_mounts(real)


def _git_folder_mounts(folder: Path) -> Iterator[Mount]:
    # It gets a mount of its own, because a mount point can be neither moved away nor replaced.
    yield Mount(folder, "write")
    closed = (folder / name for name in (*WATCHED_NAMES, *_BISECT_NAMES))
    yield from (Mount(path, "read") for path in closed if path.exists())
    linked = ("worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir")
    found = chain.from_iterable(folder.glob(name) for name in (*linked, "modules/**/config", "modules/**/hooks"))
    with contextlib.suppress(OSError):
        yield from [Mount(path, "read") for path in islice(found, _MAX_LINKED)]


def _named_git_folder(pointer: Path) -> Path | None:
    """The folder that a `.git` file names; None unless that folder itself refers back to it.

    Such a file may come with anything that was unpacked, so it opens no folder for writing on its own.
    """
    text = _read_text(pointer)
    if not text.startswith("gitdir:"):
        return None
    real = (pointer.parent / text.removeprefix("gitdir:").strip()).resolve()
    back = _read_text(real / "gitdir")
    if back and Path(real, back).resolve() == pointer:
        return real
    worktree = _WORKTREE.search(_read_text(real / "config"))
    if worktree and Path(real, worktree[1]).resolve() == pointer.parent:
        return real
    return None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        return ""


# Placeholders for protected names that are absent

_SOCKET = stat.S_IFSOCK
_FOLDER = stat.S_IFDIR | 0o555
_READ_BY_GIT = ".gitattributes"
"""Git complains about a socket here and ignores an empty folder."""


@contextmanager
def placeholders(roots: Sequence[Path], names: ProtectedNames) -> Iterator[list[Path]]:
    """Placeholders in each of the folders that exist, while the block runs."""
    with ExitStack() as held:
        placed: list[Path] = []
        for root in roots:
            if is_folder(root):
                held.enter_context(_lock_folder(root, names))
                placed += _place(root, names)
        yield placed


def remove_stale_placeholders(root: Path, names: ProtectedNames) -> None:
    """Remove the placeholders that a dead process left, unless other processes still need them."""
    with contextlib.suppress(OSError), _lock_folder(root, names):
        pass


@contextmanager
def _lock_folder(root: Path, names: ProtectedNames) -> Iterator[None]:
    """Hold a shared lock on the folder; the last of its holders removes the placeholders."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_placeholders(root, names)
    finally:
        os.close(handle)


def _place(root: Path, names: ProtectedNames) -> list[Path]:
    wanted = [(root / name, _FOLDER) for name in names.folders]
    wanted += [(root / name, _FOLDER if name == _READ_BY_GIT else _SOCKET) for name in names.files]
    placed = []
    for path, mode in wanted:
        # If it cannot be created, the command could not create it either, or the file system has no such thing.
        with contextlib.suppress(OSError):
            if not _is_placeholder(path, mode):
                if mode == _FOLDER:
                    path.mkdir(mode=0o755)
                    path.chmod(0o555)
                else:
                    os.mknod(path, mode)
            placed.append(path)
    return placed


def _remove_placeholders(root: Path, names: ProtectedNames) -> None:
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
    """A path that nothing can be mounted on, compared before and after a command."""

    path: Path
    target: str | None
    """Where it leads, if it is a link; None if it is absent."""

    def has_changed(self) -> bool:
        """Whether it differs from before."""
        return _link_target(self.path) != self.target if self.target is not None else os.path.lexists(self.path)


def watched_paths(rules: SandboxRules, repositories: Sequence[Path]) -> list[WatchedPath]:
    """Links under protected names at the top of each root, and what is absent there and in repositories."""
    roots, names = rules.writable, rules.names
    tops = [root / name for root in roots for name in (*names.folders, *names.files, *names.removed)]
    tops += links_above(rules.protected, roots)
    links = [WatchedPath(path, target) for path in tops if (target := _link_target(path)) is not None]
    watched = [root / name for root in roots for name in names.removed]
    watched += [folder / name for folder in repositories for name in WATCHED_NAMES]
    return [*links, *(WatchedPath(path, None) for path in watched if not os.path.lexists(path))]


def restore(watched: Sequence[WatchedPath]) -> tuple[Path, ...]:
    """Undo all changes after the command and its processes have ended; returns the paths that had changed."""
    changed = [one for one in watched if one.has_changed()]
    for one in changed:
        with contextlib.suppress(OSError):
            if one.path.is_dir() and not one.path.is_symlink():
                shutil.rmtree(one.path, ignore_errors=True)
            else:
                one.path.unlink(missing_ok=True)
            if one.target is not None:
                one.path.symlink_to(one.target)
    return tuple(one.path for one in changed)


def _link_target(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - text in, text out
    except OSError:
        return None


# Key stores: what no command needs to see

_IN_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".yarnrc.yml",
    ".pypirc", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".vault-token",
    ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".password-store", ".huggingface", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".claude", ".claude.json", ".codex", ".gemini", ".mozilla", ".thunderbird",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history",
    ".local/share/keyrings", ".local/share/fish/fish_history", ".local/share/opencode",
)  # fmt: skip
_IN_CONFIG = (
    "gcloud", "gh", "glab-cli", "hub", "git/credentials", "op", "1Password", "Bitwarden", "keepassxc", "sops",
    "rclone", "doctl", "pip/pip.conf", "google-chrome", "chromium", "BraveSoftware", "containers/auth.json",
)  # fmt: skip
_IN_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers.d", "/etc/krb5.keytab",
)  # fmt: skip


def key_stores(home: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The key stores that exist, with links resolved."""
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    paths = [*(home / name for name in _IN_HOME), *(config / name for name in _IN_CONFIG), *map(Path, _IN_SYSTEM)]
    with contextlib.suppress(OSError):
        paths += Path("/etc/ssh").glob("ssh_host_*_key")
    return tuple(dict.fromkeys(path.resolve() for path in paths if path_exists(path)))


# The private folder for temporary files: a resumed thread finds what its earlier commands left there.

_MAX_AGE_S = 10 * 24 * 3600
_EMPTY = ".empty"


def private_folder(name: str) -> Path:
    """The folder for everything that is started under this name; it exists."""
    base = _user_folder()
    folder = base / sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
    if not folder.exists():
        _remove_old_folders(base)
        folder.mkdir(mode=0o700, exist_ok=True)
    os.utime(folder)
    return folder


def empty_file() -> Path:
    """An empty file, which appears in place of one that holds a key."""
    path = _user_folder() / _EMPTY
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o444))
    return path


def _user_folder() -> Path:
    """A folder that only this user can enter, although all users can write beside it."""
    base = Path(tempfile.gettempdir()).resolve() / f"graph-agent-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{base} is not a folder that only you can enter (mode 0700); remove it")
    return base


def _remove_old_folders(base: Path) -> None:
    for folder in base.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > _MAX_AGE_S:
                shutil.rmtree(folder, ignore_errors=True)
