"""Putting a file back to an earlier content: at once or not at all, in the workspace only, never through a link."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.files import Snapshot, look, replace
from tools.kinds import ToolErrorType
from tools.paths import PathRefused, ResolvedPath, contains, open_directory, open_regular, resolve

__all__ = ["Former", "look_again", "put_back"]


@dataclass(frozen=True)
class Former:
    """What a file is to become again."""

    data: bytes | None
    """None: there was no file."""
    mode: int | None = None
    """Permission bits; None leaves them as they are."""
    new_folder: str | None = None
    """Where there was no file: the outermost folder that was made for it, to go with it when it is empty."""


def look_again(path: Path, workspace: Path) -> Snapshot:
    """The file at a path that was resolved once, as it is now.

    Raises:
        PathRefused: it lies outside the workspace, a link now stands on the way, or it is no regular file.
    """
    return look(_same_place(path, workspace), sys.maxsize)


def put_back(path: Path, workspace: Path, former: Former, *, expected: str | None) -> None:
    """Make the file what it was, if it now has the expected digest (None: is not there); durable at the return.

    Doing it a second time changes nothing.

    Raises:
        PathRefused: see `look_again`; or the file is not what was expected, or cannot be written.
    """
    now = look_again(path, workspace)
    if former.data is not None and now.data != former.data:
        _require(now, expected)
        replace(now, former.data, temp_name=f".{path.name[:200]}.rewind")
    if former.data is not None and former.mode is not None:
        _set_mode(now.resolved, former.mode)
    if former.data is None:
        if now.data is not None:
            _require(now, expected)
            _remove(now)
        _remove_empty(path.parent, former.new_folder, workspace)


def _same_place(path: Path, workspace: Path) -> ResolvedPath:
    resolved = resolve(str(path), workspace=workspace)
    if not resolved.inside:
        raise PathRefused(ToolErrorType.PERMISSION, f"{str(path)!r} lies outside the workspace {str(workspace)!r}.")
    if resolved.path != path:
        raise PathRefused(
            ToolErrorType.PERMISSION, f"a link on the way of {str(path)!r} now leads to {str(resolved.path)!r}."
        )
    return resolved


def _require(now: Snapshot, expected: str | None) -> None:
    if now.sha256 != expected:
        raise PathRefused(ToolErrorType.EXECUTION, f"{now.resolved.given!r} was changed by someone else.")


def _set_mode(resolved: ResolvedPath, mode: int) -> None:
    with open_regular(resolved) as fd:
        if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            os.fchmod(fd, mode)


def _remove(now: Snapshot) -> None:
    path = now.resolved.path
    with open_directory(path.parent) as parent:
        try:
            os.unlink(path.name, dir_fd=parent)
        except OSError as error:
            raise PathRefused(
                ToolErrorType.PERMISSION, f"{now.resolved.given!r} cannot be removed: {error.strerror}."
            ) from error


def _remove_empty(folder: Path, outermost: str | None, workspace: Path) -> None:
    """Remove the folder and those above it, up to the outermost one, as far as nothing is in them."""
    if outermost is None:
        return
    while folder.is_relative_to(outermost) and folder != workspace and contains(workspace, folder):
        try:
            with open_directory(folder.parent) as parent:
                os.rmdir(folder.name, dir_fd=parent)
        except (OSError, PathRefused):
            return
        folder = folder.parent
