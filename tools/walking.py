"""Finding the files below a folder, with the rules of listings: what is hidden, ignored or unreadable is counted.

Links are named, never followed. What is in the files is not looked at here.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.context import FilesSearched, ToolContext
from tools.ignored import IgnoreRules, is_hidden
from tools.kinds import ToolErrorType
from tools.paths import PathRefused, ResolvedPath, open_directory

__all__ = ["FoundFile", "Walk", "require_searchable", "shown_name", "stop_if_cancelled", "walk"]

_NEVER_SEARCHED = ("/proc", "/sys", "/dev")
_PROGRESS_EVERY = 1_000


class FoundFile(NamedTuple):
    """A file or link below the folder."""

    relative: str
    path: Path
    modified_ns: int = 0
    is_regular: bool = True


@dataclass
class Walk:
    """What was found, newest first, and how much was left out."""

    files: list[FoundFile] = field(default_factory=list)
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
    wanted: Callable[[str], bool]
    named: Callable[[str], bool]
    found: Walk


class _Level(NamedTuple):
    folder: Path
    prefix: str
    rules: IgnoreRules


def walk(
    root: ResolvedPath, context: ToolContext, *, wanted: Callable[[str], bool], named: Callable[[str], bool]
) -> Walk:
    """The files below a folder whose relative path is wanted; `named` says which left-out names are asked for.

    Raises:
        PathRefused: the folder is missing, no folder, may not be listed or never searched; or the call is stopped.
    """
    require_searchable(root)
    search = _Search(context, wanted, named, Walk())
    with open_directory(root.path.parent) as parent:
        if not _enter(root.path.name or ".", parent, _first_level(root.path, context.workspace), search):
            raise PathRefused(
                ToolErrorType.PERMISSION, f"The folder {root.given!r} may not be listed by this user."
            )
    search.found.files.sort(key=lambda file: (-file.modified_ns, file.relative))
    return search.found


def require_searchable(root: ResolvedPath) -> None:
    """Refuse the folders of the kernel: reading there has effects, and no end.

    Raises:
        PathRefused: it is one of them.
    """
    if root.reaches_process or any(root.path.is_relative_to(folder) for folder in _NEVER_SEARCHED):
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


def shown_name(name: str) -> str:
    """A name on one line of valid text: bytes that are no text, and control characters, written as escapes."""
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in name)


def _escaped(code: int) -> str:
    return f"\\x{code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code:02x}"


def _first_level(folder: Path, workspace: Path) -> _Level:
    rules = IgnoreRules(workspace)
    within = (part for part in (folder, *folder.parents) if part.is_relative_to(workspace))
    is_named = any(rules.ignores(part, is_folder=True) for part in within)
    return _Level(folder, "", IgnoreRules(folder) if is_named or not folder.is_relative_to(workspace) else rules)


def _enter(name: str, parent: int, level: _Level, search: _Search) -> bool:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return False
    try:
        with os.scandir(fd) as found:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        for entry, is_folder in entries:
            _look_at(entry, fd, is_folder, level, search)
    finally:
        os.close(fd)
    return True


def _look_at(name: str, parent: int, is_folder: bool, level: _Level, search: _Search) -> None:
    stop_if_cancelled(search.context)
    path, relative, found = level.folder / name, level.prefix + name, search.found
    is_named = search.named(name)
    if is_hidden(name) and not is_named:
        found.hidden += 1
        return
    is_ignored = level.rules.ignores(path, is_folder=is_folder)
    if is_ignored and not is_named:
        found.ignored += 1
        return
    if is_folder:
        rules = IgnoreRules(path) if is_ignored else level.rules
        if not _enter(name, parent, _Level(path, f"{relative}/", rules), search):
            found.unreadable += 1
        return
    found.seen += 1
    if found.seen % _PROGRESS_EVERY == 0:
        search.context.progress(FilesSearched(found.seen))
    if search.wanted(relative):
        _keep(name, parent, FoundFile(relative, path), search)


def _keep(name: str, parent: int, file: FoundFile, search: _Search) -> None:
    if not search.context.may_read(Path(os.path.realpath(file.path))):
        search.found.withheld += 1
        return
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        search.found.unreadable += 1
        return
    found = file._replace(modified_ns=status.st_mtime_ns, is_regular=stat.S_ISREG(status.st_mode))
    search.found.files.append(found)
