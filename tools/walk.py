"""Finding the files below a folder as listings do: hidden, ignored and unreadable entries are left out and counted.

Links are listed but never followed.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.base import FilesSearched, ToolContext
from tools.ignore_files import (
    IGNORE_FILE,
    NO_FILTER,
    IgnoreFilter,
    IgnoreRules,
    generated_folders,
    names_generated,
)
from tools.paths import PathRefused, ResolvedPath, open_directory, quoted_path
from tools.result import ToolErrorType

__all__ = [
    "FoundFile",
    "FoundFolder",
    "NewestFiles",
    "Walk",
    "WalkSelection",
    "newest_first",
    "require_searchable",
    "rules_for",
    "stop_if_cancelled",
    "walk",
]

_NEVER_SEARCHED = ("/proc", "/sys", "/dev")
_PROGRESS_EVERY = 1_000


class FoundFile(NamedTuple):
    """A file or link below the folder; as plain tuples, such values sort newest first."""

    age: int
    """Negative time of the last change; 0 where it is not known."""
    relative: str
    path: str


class NewestFiles:
    """Keeps the `count` newest of all files that are added."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: list[FoundFile] = []
        self.total = 0
        """How many there were, kept or not."""
        self.oldest = sys.maxsize
        """Older files need not be added."""

    def add(self, file: FoundFile) -> None:
        """Add one."""
        self._kept.append(file)
        # Sorted rarely, so that each file costs little however many come.
        if len(self._kept) > 4 * self._count:
            self._kept = self.files()
            self.oldest = self._kept[-1].age

    def files(self) -> list[FoundFile]:
        """The newest first."""
        return sorted(self._kept)[: self._count]


class FoundFolder(NamedTuple):
    """What was found directly in one folder."""

    path: str
    prefix: str
    """The folder relative to the start of the search, with a slash at its end; empty for the start."""
    regular: list[str]
    """Names of files."""
    others: list[str]
    """Names of links, pipes and the like."""

    def files(self, names: Collection[str] | None = None) -> Iterator[FoundFile]:
        """The regular files, all or those with these names."""
        if names is not None and not names:
            return
        start = self.path.rstrip("/")
        for name in self.regular:
            if names is None or name in names:
                yield FoundFile(0, f"{self.prefix}{name}", f"{start}/{name}")


class WalkSelection(NamedTuple):
    """What a search is for."""

    among: Callable[[str, list[str]], list[str]]
    """Of a folder's relative prefix and names, the names that are wanted."""
    names: Callable[[str], bool]
    """Whether a name that is usually left out is asked for."""
    newest: NewestFiles | None = None
    """Takes the files themselves, each with its age, where they are wanted."""
    on_folder: Callable[[FoundFolder], None] | None = None
    """Called for each folder at once, in the order of the walk."""


@dataclass
class Walk:
    """What was found, and how much was left out."""

    folders: list[FoundFolder] = field(default_factory=list)
    hidden: int = 0
    ignored: int = 0
    unreadable: int = 0
    withheld: int = 0
    generated: dict[str, int] = field(default_factory=dict)
    """How many folders of each name were left out as generated."""
    seen: int = 0

    def leave_out(self, generated: Iterable[str]) -> None:
        """Count folders as left out."""
        for name in generated:
            self.generated[name] = self.generated.get(name, 0) + 1

    def notes(self) -> list[str]:
        """One phrase about what was left out, if anything was."""
        counted = (
            (self.hidden, "hidden"),
            (self.ignored, "git-ignored"),
            (self.unreadable, "unreadable"),
            (self.withheld, "withheld by a rule"),
        )
        notes = [f"{count} {what}" for count, what in counted if count]
        if self.generated:
            named = ", ".join(sorted(self.generated))
            notes.append(f"{sum(self.generated.values())} generated ({named}; name one to see it)")
        return [f"left out: {', '.join(notes)}"] if notes else []


def walk(root: ResolvedPath, context: ToolContext, selection: WalkSelection) -> Walk:
    """The files below a folder.

    Raises:
        PathRefused: it is missing, not a folder, not to be listed or never searched; or the call is cancelled.
    """
    require_searchable(root)
    folder, workspace = root.path, context.workspace
    rules, is_own = rules_for(folder, workspace)
    above, is_suspect = NO_FILTER, False
    if not is_own:
        within = [one for one in (folder, *folder.parents) if one.is_relative_to(workspace) and one != workspace]
        is_suspect = any(rules.filter_for(one.parent).among([one.name]) for one in within)
        above = NO_FILTER if folder == workspace else rules.filter_for(folder.parent)
    walker = _Walker(context, selection, shows_generated=names_generated(folder, workspace))
    with open_directory(folder.parent) as parent:
        if not walker.enter(folder.name or ".", parent, _Level(folder, "", rules, above, is_suspect)):
            raise PathRefused(
                ToolErrorType.PERMISSION, f"You have no permission to list {quoted_path(root.given)}."
            )
    return walker.found


def newest_first(files: Sequence[FoundFile]) -> list[FoundFile]:
    """The files with their age; one that is gone by now counts as old, and is found missing when it is opened."""
    dated = []
    for file in files:
        age = 0
        with suppress(OSError):
            age = -os.lstat(file.path).st_mtime_ns
        dated.append(file._replace(age=age))
    return sorted(dated)


def require_searchable(root: ResolvedPath) -> None:
    """Refuse the folders of the kernel: reading there has effects, and no end.

    Raises:
        PathRefused: it is one of them.
    """
    if root.exposes_process or any(root.path.is_relative_to(folder) for folder in _NEVER_SEARCHED):
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{quoted_path(root.given)} belongs to the kernel and is never searched; name a file there.",
        )


def stop_if_cancelled(context: ToolContext) -> None:
    """Leave the work when the call is cancelled.

    Raises:
        PathRefused: it is.
    """
    if context.cancellation.is_set():
        raise PathRefused(ToolErrorType.CANCELLED, "The search was cancelled before it was done.")


def rules_for(folder: Path, workspace: Path) -> tuple[IgnoreRules, bool]:
    """The ignore rules for a listing that starts at a folder, and whether they begin there.

    In a folder that is ignored itself, or lies outside the workspace, no rule from above applies: it was asked for.
    """
    rules = IgnoreRules(workspace)
    within = [part for part in (folder, *folder.parents) if part.is_relative_to(workspace) and part != workspace]
    is_own = any(rules.ignores(part, is_folder=True) for part in within) or not folder.is_relative_to(workspace)
    return (IgnoreRules(folder), True) if is_own else (rules, False)


class _Level(NamedTuple):
    folder: Path
    prefix: str
    rules: IgnoreRules
    filter: IgnoreFilter
    """Of the ignore files above."""
    is_suspect: bool
    """A pattern may match this folder or one above it, so that the rules are asked for each name below."""


class _Walker:
    """Enters folder after folder through directory descriptors."""

    def __init__(self, context: ToolContext, selection: WalkSelection, *, shows_generated: bool) -> None:
        self.context = context
        self.shows_generated = shows_generated
        self.selection = selection
        self.found = Walk()

    def enter(self, name: str, parent: int, level: _Level) -> bool:
        """Search a folder; False if it may not be listed."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except OSError:
            return False
        try:
            self._search(fd, level)
        finally:
            os.close(fd)
        return True

    def _search(self, fd: int, level: _Level) -> None:
        stop_if_cancelled(self.context)
        regular, folders, others = _list_entries(fd)
        if not self.shows_generated and (made := generated_folders(folders, regular)):
            made = {name for name in made if not self.selection.names(name)}
            self.found.leave_out(made)
            folders = [name for name in folders if name not in made]
        if IGNORE_FILE in regular:
            level = level._replace(filter=level.filter.with_lines(level.rules.lines_in(level.folder)))
        regular, _ = self._keep(regular, level, is_folder=False)
        others, _ = self._keep(others, level, is_folder=False)
        before = self.found.seen
        self.found.seen += len(regular) + len(others)
        if self.found.seen // _PROGRESS_EVERY > before // _PROGRESS_EVERY:
            self.context.progress(FilesSearched(self.found.seen))
        here = FoundFolder(
            str(level.folder), level.prefix, self._select(regular, level), self._select(others, level)
        )
        self.found.folders.append(here)
        if self.selection.on_folder is not None:
            self.selection.on_folder(here)
        if self.selection.newest is not None:
            self._add_newest(here, fd, self.selection.newest)
        folders, named = self._keep(folders, level, is_folder=True)
        suspects = {*level.filter.among(folders)}
        for name in folders:
            path, prefix = level.folder / name, f"{level.prefix}{name}/"
            below = _Level(path, prefix, level.rules, level.filter, level.is_suspect or name in suspects)
            if name in named:
                below = _Level(path, prefix, IgnoreRules(path), NO_FILTER, is_suspect=False)
            if not self.enter(name, fd, below):
                self.found.unreadable += 1

    def _keep(self, names: list[str], level: _Level, *, is_folder: bool) -> tuple[list[str], set[str]]:
        """The names that are not left out; and those of them that are ignored, but asked for."""
        is_named, shown = self.selection.names, names
        # No name contains a slash, so that all of them can be searched at once.
        if "/." in "/".join(("", *names)):
            shown = [name for name in names if name[0] != "." or is_named(name)]
            self.found.hidden += len(names) - len(shown)
        suspects = shown if level.is_suspect else level.filter.among(shown)
        ignored = {name for name in suspects if level.rules.ignores(level.folder / name, is_folder=is_folder)}
        if not ignored:
            return shown, ignored
        named = {name for name in ignored if is_named(name)}
        self.found.ignored += len(ignored) - len(named)
        return [name for name in shown if name not in ignored or name in named], named

    def _select(self, names: list[str], level: _Level) -> list[str]:
        wanted = self.selection.among(level.prefix, names)
        if not self.context.filters_files:
            return wanted
        # The target of a link counts too: its own name may be an innocent one.
        shown = [name for name in wanted if self.context.may_read(Path(os.path.realpath(level.folder / name)))]
        self.found.withheld += len(wanted) - len(shown)
        return shown

    def _add_newest(self, folder: FoundFolder, fd: int, newest: NewestFiles) -> None:
        start, prefix, status = folder.path.rstrip("/"), folder.prefix, os.stat
        for name in (*folder.regular, *folder.others):
            try:
                age = -status(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
            except OSError:
                self.found.unreadable += 1
                continue
            newest.total += 1
            # Of a hundred thousand files few are ever kept.
            if age <= newest.oldest:
                newest.add(FoundFile(age, prefix + name, f"{start}/{name}"))


def _list_entries(fd: int) -> tuple[list[str], list[str], list[str]]:
    """Names of regular files, of folders and of all else."""
    regular: list[str] = []
    folders: list[str] = []
    others: list[str] = []
    with os.scandir(fd) as found:
        for entry in found:
            if entry.is_file(follow_symlinks=False):
                regular.append(entry.name)
            else:
                (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return regular, folders, others
