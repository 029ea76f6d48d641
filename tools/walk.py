"""Finding the files below a folder, with the rules of listings: what is hidden, ignored or unreadable is counted.

Links are named, never followed. What is in the files is not looked at here.

Found files by their age: the newest of very many, kept without the rest. Looks at no file.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.context import FilesSearched, ToolContext
from tools.ignore_files import IGNORE_FILE, NO_FILTER, IgnoreFilter, IgnoreRules
from tools.paths import PathRefused, ResolvedPath, open_directory
from tools.result import ToolErrorType

__all__ = [
    "FoundFile",
    "FoundFolder",
    "NewestFiles",
    "Walk",
    "WalkSelection",
    "newest_first",
    "printable_name",
    "require_searchable",
    "stop_if_cancelled",
    "walk",
]


class FoundFile(NamedTuple):
    """A file or link below the folder; as plain tuples in a set order they sort newest first."""

    age: int
    """Negative time of the last change; 0 where nobody looked."""
    relative: str
    path: str


class NewestFiles:
    """The `count` newest of all that are noted."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[FoundFile] = []
        self.total = 0
        """How many there were, kept or not."""
        self.oldest = sys.maxsize
        """What is older need not be noted."""

    def note(self, file: FoundFile) -> None:
        """Take one in."""
        self._kept.append(file)
        # Sorted seldom, so that each costs little however many come.
        if len(self._kept) > 4 * self._count:
            self._kept = self.files()
            self.oldest = self._kept[-1].age

    def files(self) -> list[FoundFile]:
        """The newest first."""
        return sorted(self._kept)[: self._count]


_NEVER_SEARCHED = ("/proc", "/sys", "/dev")
_PROGRESS_EVERY = 1_000


class FoundFolder(NamedTuple):
    """What was found directly in one folder."""

    path: str
    prefix: str
    """The folder relative to where the search began, with a slash; empty there."""
    regular: list[str]
    """Names of files."""
    others: list[str]
    """Names of links, pipes and the like."""

    def files(self, called: Collection[str] | None = None) -> Iterator[FoundFile]:
        """The regular ones, all or those called so."""
        if called is not None and not called:
            return
        start = self.path.rstrip("/")
        for name in self.regular:
            if called is None or name in called:
                yield FoundFile(0, f"{self.prefix}{name}", f"{start}/{name}")


class WalkSelection(NamedTuple):
    """What a search is for."""

    among: Callable[[str, list[str]], list[str]]
    """Of a folder's relative prefix and names, the names that are wanted."""
    names: Callable[[str], bool]
    """Whether a name that is usually left out is asked for."""
    dated: NewestFiles | None = None
    """Takes in the files themselves, each with its age, where they are wanted."""
    found: Callable[[FoundFolder], None] | None = None
    """Hears of each folder at once, in the order of the walk."""


@dataclass
class Walk:
    """What was found, and how much was left out."""

    folders: list[FoundFolder] = field(default_factory=list)
    hidden: int = 0
    ignored: int = 0
    unreadable: int = 0
    withheld: int = 0
    seen: int = 0

    def notes(self) -> list[str]:
        """One sentence about what was left out, if anything was."""
        counted = (
            (self.hidden, "hidden"),
            (self.ignored, "git-ignored"),
            (self.unreadable, "unreadable"),
            (self.withheld, "withheld by a rule"),
        )
        notes = [f"{count} {what}" for count, what in counted if count]
        return [f"left out: {', '.join(notes)}"] if notes else []


@dataclass(frozen=True)
class _Search:
    context: ToolContext
    interest: WalkSelection
    found: Walk


class _Level(NamedTuple):
    folder: Path
    prefix: str
    rules: IgnoreRules
    suspicion: IgnoreFilter
    """Of the ignore files above."""
    is_suspect: bool
    """Whether a pattern speaks of this folder or one above it, so that each name below has to be judged."""


class _Listing(NamedTuple):
    regular: list[str]
    folders: list[str]
    others: list[str]


def walk(root: ResolvedPath, context: ToolContext, interest: WalkSelection) -> Walk:
    """The files below a folder.

    Raises:
        PathRefused: the folder is missing, no folder, may not be listed or never searched; or the call is stopped.
    """
    require_searchable(root)
    search = _Search(context, interest, Walk())
    with open_directory(root.path.parent) as parent:
        if not _enter(root.path.name or ".", parent, _first_level(root.path, context.workspace), search):
            raise PathRefused(
                ToolErrorType.PERMISSION, f"The folder {root.given!r} may not be listed by this user."
            )
    return search.found


def newest_first(files: Sequence[FoundFile]) -> list[FoundFile]:
    """The files with their age; what is gone by now counts as old and is found missing by whoever opens it."""
    return sorted(file._replace(age=_age_or_none(file.path)) for file in files)


def require_searchable(root: ResolvedPath) -> None:
    """Refuse the folders of the kernel: reading there has effects, and no end.

    Raises:
        PathRefused: it is one of them.
    """
    if root.exposes_process or any(root.path.is_relative_to(folder) for folder in _NEVER_SEARCHED):
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{root.given!r} belongs to the kernel and is never searched; name a file there.",
        )


def stop_if_cancelled(context: ToolContext) -> None:
    """Leave the work when the call is being stopped.

    Raises:
        PathRefused: it is.
    """
    if context.cancellation.is_set():
        raise PathRefused(ToolErrorType.CANCELLED, "The search was stopped before it was done.")


def printable_name(name: str) -> str:
    """A name on one line of valid text: bytes that are no text, and control characters, written as escapes."""
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in name)


def _escaped(code: int) -> str:
    return f"\\x{code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code:02x}"


def _first_level(folder: Path, workspace: Path) -> _Level:
    rules = IgnoreRules(workspace)
    within = [part for part in (folder, *folder.parents) if part.is_relative_to(workspace) and part != workspace]
    is_named = any(rules.ignores(part, is_folder=True) for part in within)
    if is_named or not folder.is_relative_to(workspace):
        return _Level(folder, "", IgnoreRules(folder), NO_FILTER, is_suspect=False)
    is_suspect = any(rules.suspicion(part.parent).among([part.name]) for part in within)
    above = NO_FILTER if folder == workspace else rules.suspicion(folder.parent)
    return _Level(folder, "", rules, above, is_suspect)


def _enter(name: str, parent: int, level: _Level, search: _Search) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        _look_into(fd, _listed(fd), level, search)
    finally:
        os.close(fd)
    return True


def _listed(fd: int) -> _Listing:
    listing = _Listing([], [], [])
    with os.scandir(fd) as found:
        for entry in found:
            if entry.is_file(follow_symlinks=False):
                listing.regular.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                listing.folders.append(entry.name)
            else:
                listing.others.append(entry.name)
    return listing


def _look_into(fd: int, listing: _Listing, level: _Level, search: _Search) -> None:
    stop_if_cancelled(search.context)
    if IGNORE_FILE in listing.regular:
        level = level._replace(suspicion=level.suspicion.joined_by(level.rules.lines_in(level.folder)))
    regular, _ = _kept(listing.regular, level, search, is_folder=False)
    others, _ = _kept(listing.others, level, search, is_folder=False)
    _count(len(regular) + len(others), search)
    here = FoundFolder(
        str(level.folder), level.prefix, _wanted(regular, level, search), _wanted(others, level, search)
    )
    search.found.folders.append(here)
    if search.interest.found is not None:
        search.interest.found(here)
    if search.interest.dated is not None:
        search.found.unreadable += _date(here, fd, search.interest.dated)
    folders, named = _kept(listing.folders, level, search, is_folder=True)
    suspects = {*level.suspicion.among(folders)}
    for name in folders:
        path, prefix = level.folder / name, f"{level.prefix}{name}/"
        below = _Level(path, prefix, level.rules, level.suspicion, level.is_suspect or name in suspects)
        if name in named:
            below = _Level(path, prefix, IgnoreRules(path), NO_FILTER, is_suspect=False)
        if not _enter(name, fd, below, search):
            search.found.unreadable += 1


def _kept(names: list[str], level: _Level, search: _Search, *, is_folder: bool) -> tuple[list[str], set[str]]:
    """The names that are not left out; and those of them that are ignored, but asked for."""
    is_named, found = search.interest.names, search.found
    shown = names
    # No name has a slash in it, so that all of them can be searched at once.
    if "/." in "/".join(("", *names)):
        shown = [name for name in names if name[0] != "." or is_named(name)]
        found.hidden += len(names) - len(shown)
    suspects = shown if level.is_suspect else level.suspicion.among(shown)
    ignored = {name for name in suspects if level.rules.ignores(level.folder / name, is_folder=is_folder)}
    if not ignored:
        return shown, ignored
    named = {name for name in ignored if is_named(name)}
    found.ignored += len(ignored) - len(named)
    return [name for name in shown if name not in ignored or name in named], named


def _count(files: int, search: _Search) -> None:
    before = search.found.seen
    search.found.seen += files
    if search.found.seen // _PROGRESS_EVERY > before // _PROGRESS_EVERY:
        search.context.progress(FilesSearched(search.found.seen))


def _wanted(names: list[str], level: _Level, search: _Search) -> list[str]:
    wanted = search.interest.among(level.prefix, names)
    if not search.context.filters_files:
        return wanted
    # Where a link leads counts too: its own name may be an innocent one.
    shown = [name for name in wanted if search.context.may_read(Path(os.path.realpath(level.folder / name)))]
    search.found.withheld += len(wanted) - len(shown)
    return shown


def _date(folder: FoundFolder, fd: int, dated: NewestFiles) -> int:
    """Note the files of a folder; returns how many could not be looked at."""
    start, prefix, unreadable = folder.path.rstrip("/"), folder.prefix, 0
    names, status = (*folder.regular, *folder.others), os.stat
    for name in names:
        try:
            age = -status(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            unreadable += 1
            continue
        # Of a hundred thousand files few are ever named.
        if age <= dated.oldest:
            dated.note(FoundFile(age, prefix + name, f"{start}/{name}"))
    dated.total += len(names) - unreadable
    return unreadable


def _age_or_none(path: str) -> int:
    try:
        return -os.lstat(path).st_mtime_ns
    except OSError:
        return 0
