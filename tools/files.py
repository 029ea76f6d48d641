"""Reading a file whole and replacing it atomically if it is still what was read; restoring an earlier content."""

import errno
import hashlib
import operator
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.paths import (
    PathRefused,
    ResolvedPath,
    contains,
    open_directory,
    open_regular,
    quoted_path,
    resolve,
)
from tools.result import ToolErrorType

__all__ = [
    "FileVersion",
    "Snapshot",
    "read_all",
    "read_snapshot",
    "replace_file",
    "restore_file",
    "sha256_hex",
    "snapshot_at",
]

_CHUNK = 1024 * 1024
_PIECE = 128 * 1024
"""Bytes compared and hashed at once: pieces of this size stay in the processor's cache."""
_HAS_ACCESS = os.access in os.supports_follow_symlinks and os.access in os.supports_dir_fd


def sha256_hex(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Snapshot:
    """A file at the moment it was read; data and status are None if it did not exist."""

    resolved: ResolvedPath
    data: bytes | None = None
    status: os.stat_result | None = None

    @cached_property
    def sha256(self) -> str | None:
        """Digest of the content."""
        return None if self.data is None else sha256_hex(self.data)

    def digest_of_next(self, data: bytes) -> str:
        """Digest of the content that will replace it; their common beginning is hashed only once."""
        if self.data is None or "sha256" in self.__dict__:
            return sha256_hex(data)
        common, at = hashlib.sha256(), 0
        while (piece := self.data[at : at + _PIECE]) and data.startswith(piece, at):
            common.update(piece)
            at += len(piece)
        after = common.copy()
        common.update(memoryview(self.data)[at:])
        after.update(memoryview(data)[at:])
        # This is where cached_property stores its value.
        self.__dict__["sha256"] = common.hexdigest()
        return after.hexdigest()

    def is_current(self, resolved: ResolvedPath) -> bool:
        """Whether this path leads to this very file, or to none still, and nobody has changed it since."""
        if resolved != self.resolved:
            return False
        try:
            now = resolved.path.stat(follow_symlinks=False)
        except OSError:
            return self.status is None
        return self.status is not None and _version(now) == _version(self.status)

    def as_observed(self) -> dict[str, Any]:
        """What a preview records of the file."""
        return {
            "path": str(self.resolved.path),
            "device": self.status.st_dev if self.status else None,
            "inode": self.status.st_ino if self.status else None,
            "sha256": self.sha256,
        }


_version = operator.attrgetter("st_dev", "st_ino", "st_mode", "st_nlink", "st_size", "st_mtime_ns", "st_ctime_ns")


def read_snapshot(resolved: ResolvedPath, max_bytes: int) -> Snapshot:
    """Read a file whole; a file that does not exist gives an empty snapshot.

    Raises:
        PathRefused: it is not a regular file, may not be read, or is larger than `max_bytes`.
    """
    try:
        with open_regular(resolved) as fd:
            status = os.fstat(fd)
            data = read_all(fd, status.st_size) if status.st_size <= max_bytes else None
    except PathRefused as refused:
        if refused.kind is not ToolErrorType.NOT_FOUND:
            raise
        return Snapshot(resolved)
    if data is None:
        limit = f"files over {max_bytes} bytes are not changed"
        message = f"{quoted_path(resolved.given)} has {status.st_size} bytes; {limit}."
        raise PathRefused(ToolErrorType.VALIDATION, message)
    return Snapshot(resolved, data, status)


def read_all(fd: int, expected: int = _CHUNK) -> bytes:
    """Everything from the descriptor's position on; read in one piece if it is as long as expected."""
    parts = [os.read(fd, expected + 1)]
    while parts[-1]:
        parts.append(os.read(fd, _CHUNK))
    return parts[0] if len(parts) <= 2 else b"".join(parts)


def replace_file(before: Snapshot, data: bytes, *, temp_name: str, new_mode: int = 0o666) -> None:
    """Replace the content of a file atomically; durable when it returns.

    Missing folders are created. A new file gets `new_mode`, less the umask; an existing one keeps its mode bits,
    and its owner if this user may set it. An existing temporary file is treated as left by a killed attempt.

    Raises:
        PathRefused: the file is no longer what was read, is read-only, or cannot be written.
    """
    resolved = before.resolved
    if resolved.exposes_process or not resolved.path.name:
        raise PathRefused(ToolErrorType.PERMISSION, f"{quoted_path(resolved.given)} cannot be written.")
    with open_directory(resolved.path.parent, create=True) as parent:
        name = resolved.path.name
        if before.status is not None:
            # The mode is checked too, because the superuser may write even to files marked read-only.
            may_write = not _HAS_ACCESS or os.access(name, os.W_OK, dir_fd=parent, follow_symlinks=False)
            if not may_write or not before.status.st_mode & 0o222:
                message = f"{quoted_path(resolved.given)} is read-only for this user; it was not changed."
                raise PathRefused(ToolErrorType.PERMISSION, message)
        try:
            _write_temp_file(before, data, parent, (temp_name, new_mode))
            _require_unchanged(before)
            os.rename(temp_name, name, src_dir_fd=parent, dst_dir_fd=parent)
        except (OSError, PathRefused) as error:
            with suppress(FileNotFoundError):
                os.unlink(temp_name, dir_fd=parent)
            if isinstance(error, PathRefused):
                raise
            is_forbidden = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
            raise PathRefused(
                ToolErrorType.PERMISSION if is_forbidden else ToolErrorType.EXECUTION,
                f"{quoted_path(resolved.given)} was not written: {error.strerror}. The old content is unchanged.",
            ) from error
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _require_unchanged(before: Snapshot) -> None:
    try:
        with open_regular(before.resolved) as fd:
            is_same_file = before.status is not None and os.path.samestat(os.fstat(fd), before.status)
            is_unchanged = is_same_file and before.data is not None and _has_content(fd, before.data)
    except PathRefused as refused:
        if refused.kind is not ToolErrorType.NOT_FOUND:
            raise
        is_unchanged = before.data is None
    if not is_unchanged:
        raise PathRefused(
            ToolErrorType.EXECUTION,
            f"{quoted_path(before.resolved.given)} was just changed by someone else; read it again.",
        )


def _has_content(fd: int, data: bytes) -> bool:
    """Whether the file has exactly this content; compared piece by piece, without a second copy."""
    at = 0
    while part := os.read(fd, _PIECE):
        if not data.startswith(part, at):
            return False
        at += len(part)
    return at == len(data)


def _write_temp_file(before: Snapshot, data: bytes, parent: int, temp: tuple[str, int]) -> None:
    name, new_mode = temp
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, new_mode if before.status is None else 0o600, dir_fd=parent)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if before.status is not None:
            now, owner = os.fstat(fd), (before.status.st_uid, before.status.st_gid)
            if (now.st_uid, now.st_gid) != owner:
                with suppress(PermissionError):
                    os.fchown(fd, *owner)
            os.fchmod(fd, stat.S_IMODE(before.status.st_mode))
        os.fsync(fd)
    finally:
        os.close(fd)


@dataclass(frozen=True)
class FileVersion:
    """An earlier state of a file, to be restored."""

    data: bytes | None
    """None: the file did not exist."""
    mode: int | None = None
    """Permission bits; None leaves them unchanged."""
    new_folder: str | None = None
    """If there was no file: the outermost folder created for it, to be removed with it if it is empty."""


def snapshot_at(path: Path, workspace: Path) -> Snapshot:
    """The current state of the file at a path that was resolved before.

    Raises:
        PathRefused: it is outside the workspace, the path now contains a link, or it is not a regular file.
    """
    resolved = resolve(str(path), workspace=workspace)
    if not resolved.inside:
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{quoted_path(str(path))} is outside the workspace {quoted_path(str(workspace))}.",
        )
    if resolved.path != path:
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{quoted_path(str(path))} now leads through a link to {quoted_path(str(resolved.path))}.",
        )
    return read_snapshot(resolved, sys.maxsize)


def restore_file(path: Path, workspace: Path, former: FileVersion, *, expected: str | None) -> None:
    """Restore the file if it now has the expected digest (None: does not exist); durable when it returns.

    Repeating it changes nothing.

    Raises:
        PathRefused: see `snapshot_at`; or the file is not what was expected, or cannot be written.
    """
    now = snapshot_at(path, workspace)
    is_changed = now.data != former.data
    if is_changed and now.sha256 != expected:
        raise PathRefused(
            ToolErrorType.EXECUTION, f"{quoted_path(now.resolved.given)} was changed by someone else."
        )
    if former.data is None:
        if is_changed:
            with open_directory(path.parent) as parent:
                try:
                    os.unlink(path.name, dir_fd=parent)
                except OSError as error:
                    message = f"{quoted_path(now.resolved.given)} cannot be removed: {error.strerror}."
                    raise PathRefused(ToolErrorType.PERMISSION, message) from error
        _remove_empty(path.parent, former.new_folder, workspace)
        return
    if is_changed:
        replace_file(now, former.data, temp_name=f".{path.name[:200]}.rewind")
    if former.mode is not None:
        with open_regular(now.resolved) as fd:
            if stat.S_IMODE(os.fstat(fd).st_mode) != former.mode:
                os.fchmod(fd, former.mode)


def _remove_empty(folder: Path, outermost: str | None, workspace: Path) -> None:
    """Remove the folder and those above it, up to the outermost one, as far as they are empty."""
    if outermost is None:
        return
    while folder.is_relative_to(outermost) and folder != workspace and contains(workspace, folder):
        try:
            with open_directory(folder.parent) as parent:
                os.rmdir(folder.name, dir_fd=parent)
        except (OSError, PathRefused):
            return
        folder = folder.parent
