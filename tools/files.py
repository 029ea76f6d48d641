"""Looking at a file and replacing it as a whole, bound to what was looked at. Knows bytes only.

Putting a file back to an earlier content: at once or not at all, in the workspace only, never through a link.
"""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.paths import PathRefused, ResolvedPath, contains, open_directory, open_regular, resolve
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
"""What is read and compared, or compared and hashed, at once: so much stays in the processor's cache."""


def sha256_hex(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Snapshot:
    """A file as it was when it was looked at; data and status are None where there was none."""

    resolved: ResolvedPath
    data: bytes | None = None
    status: os.stat_result | None = None

    @cached_property
    def sha256(self) -> str | None:
        """Digest of the content."""
        return None if self.data is None else sha256_hex(self.data)

    def digest_of_next(self, data: bytes) -> str:
        """Digest of what is to take its place; what both begin with is hashed once for both."""
        if self.data is None or "sha256" in self.__dict__:
            return sha256_hex(data)
        # Where the property keeps what it once found.
        self.__dict__["sha256"], after = _digests(self.data, data)
        return after

    def as_observed(self) -> dict[str, Any]:
        """What a preview remembers of it."""
        return {
            "path": str(self.resolved.path),
            "device": self.status.st_dev if self.status else None,
            "inode": self.status.st_ino if self.status else None,
            "sha256": self.sha256,
        }


def _digests(before: bytes, after: bytes) -> tuple[str, str]:
    """Of two contents; compared and hashed piece by piece as far as they are alike."""
    common, at = hashlib.sha256(), 0
    while (piece := before[at : at + _PIECE]) and after.startswith(piece, at):
        common.update(piece)
        at += len(piece)
    rest = common.copy()
    common.update(memoryview(before)[at:])
    rest.update(memoryview(after)[at:])
    return common.hexdigest(), rest.hexdigest()


def read_snapshot(resolved: ResolvedPath, max_bytes: int) -> Snapshot:
    """Read a file whole, or find that there is none.

    Raises:
        PathRefused: it is no regular file, may not be read, or is larger than `max_bytes`.
    """
    try:
        with open_regular(resolved) as fd:
            status = os.fstat(fd)
            _require_size(resolved, status.st_size, max_bytes)
            return Snapshot(resolved, read_all(fd, status.st_size), status)
    except PathRefused as refused:
        if refused.kind is not ToolErrorType.NOT_FOUND:
            raise
        return Snapshot(resolved)


def _require_size(resolved: ResolvedPath, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{resolved.given!r} has {size} bytes; files over {max_bytes} bytes are not changed.",
        )


def read_all(fd: int, expected: int = _CHUNK) -> bytes:
    """Everything from the descriptor's position on; in one piece, without a copy, if it is as long as expected."""
    parts = [os.read(fd, expected + 1)]
    while parts[-1]:
        parts.append(os.read(fd, _CHUNK))
    return parts[0] if len(parts) <= 2 else b"".join(parts)


def replace_file(before: Snapshot, data: bytes, *, temp_name: str, new_mode: int = 0o666) -> None:
    """Put a new content in place of what was looked at, at once or not at all; durable when it returns.

    Missing folders are created. A new file has `new_mode`, less the umask; else mode bits stay, and the owner where
    this user can give files away. A stale file of that temporary name is taken for what a killed attempt left.

    Raises:
        PathRefused: the file is not the one that was looked at any more, is read-only, or cannot be written.
    """
    resolved = before.resolved
    if resolved.exposes_process or not resolved.path.name:
        raise PathRefused(ToolErrorType.PERMISSION, f"{resolved.given!r} cannot be written.")
    with open_directory(resolved.path.parent, create=True) as parent:
        _require_writable(before, parent)
        try:
            _write_beside(before, data, parent, (temp_name, new_mode))
            _require_unchanged(before)
            os.rename(temp_name, resolved.path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            _remove(temp_name, parent)
            raise _write_refusal(resolved, error) from error
        except PathRefused:
            _remove(temp_name, parent)
            raise
        _sync_directory(parent)


def _require_writable(before: Snapshot, parent: int) -> None:
    if before.status is None:
        return
    name = before.resolved.path.name
    # The mode is looked at as well because the superuser may write to everything, even to what is marked read-only.
    may_write = os.access(name, os.W_OK, dir_fd=parent, follow_symlinks=False) if _ACCESS_NOFOLLOW else True
    if not may_write or not before.status.st_mode & 0o222:
        raise PathRefused(
            ToolErrorType.PERMISSION, f"{before.resolved.given!r} is read-only for this user; it was not changed."
        )


_ACCESS_NOFOLLOW = os.access in os.supports_follow_symlinks and os.access in os.supports_dir_fd


def _require_unchanged(before: Snapshot) -> None:
    if not _is_as_before(before):
        raise PathRefused(
            ToolErrorType.EXECUTION,
            f"{before.resolved.given!r} was changed by someone else at this very moment; read it again.",
        )


def _is_as_before(before: Snapshot) -> bool:
    try:
        with open_regular(before.resolved) as fd:
            if before.data is None or before.status is None:
                return False
            return os.path.samestat(os.fstat(fd), before.status) and _holds(fd, before.data)
    except PathRefused as refused:
        if refused.kind is not ToolErrorType.NOT_FOUND:
            raise
        return before.data is None


def _holds(fd: int, data: bytes) -> bool:
    """Whether exactly this is to be read there; compared piece by piece, so that there is no second copy."""
    at = 0
    while part := os.read(fd, _PIECE):
        if not data.startswith(part, at):
            return False
        at += len(part)
    return at == len(data)


def _write_beside(before: Snapshot, data: bytes, parent: int, temp: tuple[str, int]) -> None:
    name, new_mode = temp
    _remove(name, parent)
    with _created(name, parent, new_mode if before.status is None else 0o600) as fd:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if before.status is not None:
            _keep_owner(fd, before.status)
            os.fchmod(fd, stat.S_IMODE(before.status.st_mode))
        os.fsync(fd)


@contextmanager
def _created(temp_name: str, parent: int, mode: int) -> Iterator[int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temp_name, flags, mode, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


def _keep_owner(fd: int, status: os.stat_result) -> None:
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) == (status.st_uid, status.st_gid):
        return
    try:
        os.fchown(fd, status.st_uid, status.st_gid)
    except PermissionError:
        return


def _remove(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return


def _sync_directory(parent: int) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_refusal(resolved: ResolvedPath, error: OSError) -> PathRefused:
    kind = ToolErrorType.EXECUTION
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        kind = ToolErrorType.PERMISSION
    return PathRefused(kind, f"{resolved.given!r} was not written: {error.strerror}. The old content is unharmed.")


@dataclass(frozen=True)
class FileVersion:
    """What a file is to become again."""

    data: bytes | None
    """None: there was no file."""
    mode: int | None = None
    """Permission bits; None leaves them as they are."""
    new_folder: str | None = None
    """Where there was no file: the outermost folder that was made for it, to go with it when it is empty."""


def snapshot_at(path: Path, workspace: Path) -> Snapshot:
    """The file at a path that was resolved once, as it is now.

    Raises:
        PathRefused: it lies outside the workspace, a link now stands on the way, or it is no regular file.
    """
    return read_snapshot(_same_place(path, workspace), sys.maxsize)


def restore_file(path: Path, workspace: Path, former: FileVersion, *, expected: str | None) -> None:
    """Make the file what it was, if it now has the expected digest (None: is not there); durable at the return.

    Doing it a second time changes nothing.

    Raises:
        PathRefused: see `look_again`; or the file is not what was expected, or cannot be written.
    """
    now = snapshot_at(path, workspace)
    if former.data is not None and now.data != former.data:
        _require(now, expected)
        replace_file(now, former.data, temp_name=f".{path.name[:200]}.rewind")
    if former.data is not None and former.mode is not None:
        _set_mode(now.resolved, former.mode)
    if former.data is None:
        if now.data is not None:
            _require(now, expected)
            _remove_restoring(now)
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


def _remove_restoring(now: Snapshot) -> None:
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
