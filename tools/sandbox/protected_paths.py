"""What a sandbox allows, and which existing paths it closes: protected names, repositories, what deny rules name,
key stores; and its folders for temporary files."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, islice, takewhile
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, assert_never, get_args

from policy import ClosedPath

__all__ = [
    "WATCHED_NAMES",
    "ClosedPlaces",
    "Mount",
    "ProtectedNames",
    "SandboxRules",
    "find_closed_places",
    "folder_mounts",
    "git_folder",
    "is_folder",
    "key_stores",
    "ordered_mounts",
    "path_exists",
    "private_folder",
    "repository_mounts",
    "stand_in_file",
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
    closed: tuple[ClosedPath, ...] = ()
    """What deny rules close: hidden, or at least not written."""
    repository: Path | None = None
    """The root of the repository that the workspace is part of, if it lies above."""
    memory: int | None = None
    """Bytes that a command may use."""
    processes: int | None = None
    """Processes that a command may have at once."""


MountKind = Literal["held", "write", "read", "locked", "empty", "unreadable"]
_STRICTNESS = {kind: strictness for strictness, kind in enumerate(get_args(MountKind))}


class Mount(NamedTuple):
    """One path and how it appears in the sandbox."""

    path: Path
    kind: MountKind
    """held: as it is in the folder around it, but it cannot be moved away; write: as it is; read: as it is, but not
    writable; locked: the same with everything below; empty: without content, except for what is opened below, and
    not writable; unreadable: it cannot be opened, nor what is below, so that no program takes that for deleted."""
    source: Path | None = None
    """What appears there instead; None for the path itself."""


def ordered_mounts(mounts: list[Mount]) -> Iterator[Mount]:
    """Outer before inner, and of each path only the strictest, so that no mount opens what another one closed."""
    strictest: dict[Path, Mount] = {}
    for mount in mounts:
        known = strictest.get(mount.path)
        if known is None or _precedence(mount) > _precedence(known):
            strictest[mount.path] = mount
    opened = {folder for mount in mounts if not _hides(mount) for folder in (mount.path, *mount.path.parents)}
    kept: dict[Path, Mount] = {}
    for mount in sorted(strictest.values(), key=lambda mount: len(mount.path.parts)):
        outer = next((kept[folder] for folder in mount.path.parents if folder in kept), None)
        if outer is None or _has_effect(mount, outer, opened):
            kept[mount.path] = mount
            yield mount


def _precedence(mount: Mount) -> tuple[bool, int]:
    # Where another folder appears nothing is left to be closed.
    return mount.source is not None, _STRICTNESS[mount.kind]


def _hides(mount: Mount) -> bool:
    return mount.kind in ("empty", "unreadable")


def _has_effect(mount: Mount, outer: Mount, opened: AbstractSet[Path]) -> bool:
    """Whether a mount opens or closes anything in the one around it; `opened` is what leads to an opened path."""
    match outer.kind:
        case "unreadable":
            return False
        case "locked":
            return _hides(mount)
        case "empty":
            return not _hides(mount)
        case "read" if mount.kind == "held":
            return False
        case "held" | "write" | "read":
            is_replaced = outer.source is not None and _hides(mount)
            return not is_replaced or (mount.kind == "unreadable" and mount.path in opened)
        case _ as never:
            assert_never(never)


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
"""After so many names no further folder is looked at, as it happens before every command."""
_MAX_MOUNTS = 100
"""Of protected names in a folder."""
_MAX_CLOSED = 300
"""Of paths that deny rules close."""
_SKIPPED = frozenset(("node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".mypy_cache"))


class ClosedPlaces(NamedTuple):
    """What is closed in the file system as it is now."""

    protected: tuple[Mount, ...]
    """In writable folders, because of its name, outermost names first."""
    denied: tuple[Mount, ...]
    """Anywhere, because of a deny rule, and the folders above that could be moved away with it."""
    gaps: tuple[tuple[str, str], ...]
    """Deny rules that cannot be fully enforced, each with the reason."""


def find_closed_places(rules: SandboxRules, *, with_names: bool = True) -> ClosedPlaces:
    """Look up what is to be closed; without names only what deny rules close."""
    names = rules.names if with_names else None
    searches = {root: _Search(root, names, rules.closed) for root in rules.writable if with_names or rules.closed}
    for closed in rules.closed:
        folder = Path(closed.folder)
        if _has_wildcard(closed) and folder not in searches and folder != Path(folder.anchor):
            searches[folder] = _Search(folder, None, rules.closed)
    found = _Denied(rules)
    for closed in rules.closed:
        found.add(Path(closed.folder), closed)
    for search in searches.values():
        search.run()
        for path, closed in search.denied:
            found.add(path, closed)
    protected = [
        mount for root, one in searches.items() for mount in _protected_mounts(root, one.protected, rules.writable)
    ]
    if with_names and rules.repository is not None:
        protected += repository_mounts(rules.repository / ".git", rules.writable)
    left_out: dict[str, dict[str, None]] = {}
    for search in searches.values():
        for rule, reason in search.left_out:
            left_out.setdefault(rule, {})[reason] = None
    gaps = [(rule, f"the sandbox does not search {', '.join(reasons)}") for rule, reasons in left_out.items()]
    return ClosedPlaces(tuple(protected), tuple(found.mounts), (*found.gaps, *gaps))


def _has_wildcard(closed: ClosedPath) -> bool:
    """Whether it has to be searched for: with two stars alone it is its whole folder."""
    return closed.names not in ((), ("**",))


class _Search:
    """One look through a folder, breadth first, for protected names and for what wildcards of deny rules match."""

    def __init__(self, folder: Path, names: ProtectedNames | None, closed: Sequence[ClosedPath]) -> None:
        self._folder, self._names = folder, names
        # A rule that starts further up, as `~/**/.env`, holds here too.
        self._closed = [one for one in closed if _has_wildcard(one) and folder.is_relative_to(one.folder)]
        self.protected: list[Path] = []
        self.denied: list[tuple[Path, ClosedPath]] = []
        self.left_out: dict[tuple[str, str], None] = {}
        """Rules, each with something that was not looked at and in which they may name a path."""

    def run(self) -> None:
        """Search as far as the limits go."""
        folders, seen = deque([_Level(self._folder, 0, self._names, self._closed)]), 0
        while folders and seen < _MAX_ENTRIES:
            level = folders.popleft()
            if level.names is None and not level.closed:
                continue
            for entry in _entries(level.folder):
                seen += 1
                below = self._look_at(entry, level)
                if not entry.is_dir(follow_symlinks=False) or entry.name == ".git":
                    continue
                if entry.name in _SKIPPED or below.depth > _MAX_DEPTH:
                    far = f"what is more than {_MAX_DEPTH} folders down"
                    self._note(below, far if below.depth > _MAX_DEPTH else entry.name)
                else:
                    folders.append(below)
        for level in folders:
            self._note(level, f"what follows the first {_MAX_ENTRIES:,} names")

    def _look_at(self, entry: os.DirEntry[str], level: "_Level") -> "_Level":
        """Note what closes an entry; returns what is to be looked for below it, if it is a folder."""
        path = level.folder / entry.name
        names, closed, text = level.names, list(level.closed), str(path)
        if names is not None and names.is_protected(path.relative_to(self._folder)):
            is_link = entry.is_symlink() and entry.name != ".git"
            self.protected.append(path.resolve() if is_link else path)
            names = None
        is_folder = entry.is_dir(follow_symlinks=False)
        for one in level.closed:
            is_whole = is_folder and one.covers_all_in(text)
            if is_whole or one.covers(text):
                self.denied.append((path, one))
            if is_whole:
                closed.remove(one)
            if is_whole and one.access == "read":
                return _Level(path, level.depth + 1, None, ())
        return _Level(path, level.depth + 1, names, closed)

    def _note(self, level: "_Level", reason: str) -> None:
        for one in level.closed:
            depth = len(level.folder.relative_to(one.folder).parts)
            if depth < len(one.names) or any("**" in name for name in one.names):
                self.left_out[one.rule, reason] = None


class _Level(NamedTuple):
    """A folder that is searched, and what for."""

    folder: Path
    depth: int
    names: ProtectedNames | None
    closed: Sequence[ClosedPath]


class _Denied:
    """Gathers what deny rules close, with links resolved."""

    def __init__(self, rules: SandboxRules) -> None:
        self._rules = rules
        self.mounts: dict[Mount, None] = {}
        self.gaps: dict[tuple[str, str], None] = {}

    def add(self, path: Path, closed: ClosedPath) -> None:
        """Close a path if it exists and the rule covers it, and in a folder everything."""
        real, roots = Path(os.path.realpath(path)), self._rules.writable
        if not (closed.covers_all_in(str(path)) if is_folder(real) else closed.covers(str(path))):
            if is_folder(real) and not closed.names:
                self.gaps[closed.rule, f"{path} is a folder, and what is in it is named by {path}/**"] = None
            return
        places = self._places_of(real, closed)
        if len(self.mounts) + len(places) > _MAX_CLOSED:
            self.gaps[closed.rule, f"only the first {_MAX_CLOSED} paths are closed"] = None
            return
        for place in places:
            self.mounts[Mount(place, "unreadable" if closed.access == "read" else "locked")] = None
        for folder in _folders_to_hold(path, real, closed) if places else ():
            if any(root in folder.parents for root in roots):
                self.mounts[Mount(folder, "held")] = None

    def _places_of(self, real: Path, closed: ClosedPath) -> list[Path]:
        """What is to be closed for it: also the writable folders below, which are opened otherwise."""
        if not path_exists(real):
            return []
        roots = self._rules.writable
        places = [root for root in roots if real in root.parents]
        if real == Path(real.anchor):
            self.gaps[closed.rule, "it closes the whole disk, and the sandbox only the folders it may write"] = None
        elif closed.access == "read" or any(real.is_relative_to(root) for root in roots):
            places.append(real)
        return places


def _folders_to_hold(path: Path, real: Path, closed: ClosedPath) -> Iterator[Path]:
    """The folders above a closed path without which the rule would no longer name it, if one were moved away."""
    if real != path or "**" not in closed.names[:-1]:
        yield from real.parents
        return
    # From two stars on only the names that follow the last ones count.
    names = closed.names[:-1] if closed.names[-1] == "**" else closed.names
    following = list(takewhile(lambda name: "**" not in name, reversed(names)))
    yield from real.parents[: len(following) - 1]
    yield from (folder for folder in real.parents if PurePath(closed.folder).is_relative_to(folder))


def _protected_mounts(root: Path, paths: Sequence[Path], writable: Sequence[Path]) -> Iterator[Mount]:
    found = 0
    for path in paths:
        for mount in repository_mounts(path, writable) if path.name == ".git" else (Mount(path, "read"),):
            # A link may lead anywhere, but nothing outside of the folder can be written anyway.
            if path.name == ".git" or mount.path.is_relative_to(root):
                yield mount
                found += 1
        if found >= _MAX_MOUNTS:
            return


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
            yield from (Mount(outer, "held") for outer in above)
            yield Mount(folder, "read")


# Repositories: what of `.git` runs programs later is closed, what a commit writes stays writable.

WATCHED_NAMES = ("config", "hooks", "config.worktree", "commondir", "rebase-merge", "rebase-apply", "sequencer")
"""What must not appear in a repository's folder; it gets no placeholder, because Git would fail at one.
The last three hold commands that `git rebase --continue` runs."""
_BISECT_NAMES = ("BISECT_LOG", "BISECT_NAMES", "BISECT_START", "BISECT_TERMS")
_MAX_LINKED = 64
"""How many submodules and worktrees are looked at."""
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*\"?(.*?)\"?\s*$", re.MULTILINE)


def repository_mounts(path: Path, writable: Sequence[Path] = ()) -> Iterator[Mount]:
    """Mounts for `.git`: the folder itself, or a link or file that names it.

    A link or file may come with anything that was unpacked. So it opens no folder for writing on its own: that
    folder has to refer back, as those of worktrees and submodules do, or to lie in a writable one.
    """
    if path.is_dir() and not path.is_symlink():
        yield from _git_folder_mounts(path)
        return
    if not path.is_symlink():
        yield Mount(path, "read")
    real = git_folder(path)
    if real is None or not (_refers_back(real, path) or any(real.is_relative_to(root) for root in writable)):
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


def git_folder(path: Path) -> Path | None:
    """The folder that `.git` is, links to or names; None if there is none."""
    if is_folder(path):
        return path.resolve()
    text = _read_text(path)
    real = (path.parent / text.removeprefix("gitdir:").strip()).resolve()
    return real if text.startswith("gitdir:") and is_folder(real) else None


def _refers_back(real: Path, pointer: Path) -> bool:
    """Whether a folder names the `.git` file that names it, or the folder in which that lies."""
    back = _read_text(real / "gitdir")
    if pointer.is_symlink():
        return False
    if back and Path(real, back).resolve() == pointer:
        return True
    worktree = _WORKTREE.search(_read_text(real / "config"))
    return worktree is not None and Path(real, worktree[1]).resolve() == pointer.parent


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        return ""


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
_STAND_INS: Mapping[MountKind, tuple[str, int]] = {"empty": (".empty", 0o444), "unreadable": (".unreadable", 0)}
"""Name and mode of what appears in place of a file."""


def private_folder(name: str) -> Path:
    """The folder for everything that is started under this name; it exists."""
    base = _user_folder()
    folder = base / sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
    if not folder.exists():
        _remove_old_folders(base)
        folder.mkdir(mode=0o700, exist_ok=True)
    os.utime(folder)
    return folder


def stand_in_file(kind: MountKind) -> Path:
    """An empty file that appears in place of one that is hidden."""
    name, mode = _STAND_INS[kind]
    path = _user_folder() / name
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, mode))
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
