"""Content-addressed files beside the database: before-images, large outputs, and output files of running calls."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_SH, flock
from pathlib import Path

from graph_agent.errors import StorageError
from graph_agent.storage.private_files import make_private_folder, open_private_file, sync, sync_folder
from graph_agent.storage.sqlite.database_file import translate_error

__all__ = ["FileBlobs", "require_digest"]

_REFERENCE = re.compile(r"blob:sha256:([0-9a-f]{64})")


class FileBlobs:
    """The port `Blobs` over a folder. A blob's name is the digest of its bytes; its file holds them compressed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """Store bytes, durably when this returns, so that a row may name them.

        Raises:
            StorageError: the disk failed; nothing half-written has the blob's name.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            make_private_folder(path.parent)
            with self._locked(LOCK_SH):
                if path.exists():
                    os.utime(path)
                else:
                    self._write(path, zlib.compress(data))
            # Also where the file existed already: the process that wrote it may not have got this far.
            sync_folder(path.parent)
        except OSError as error:
            raise translate_error(path, error) from error
        return f"blob:sha256:{digest}"

    def get(self, reference: str) -> bytes:
        digest = require_digest(reference)
        path = self._path(digest)
        try:
            data = zlib.decompress(path.read_bytes())
        except FileNotFoundError as error:
            raise StorageError(
                f"{reference!r} is missing: there is no file {str(path)!r}. Restore it from a backup."
            ) from error
        except OSError as error:
            raise translate_error(path, error) from error
        except zlib.error as error:
            raise _damaged(reference, path) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _damaged(reference, path)
        return data

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """See `Blobs.spool`. Ids are hashed: a model chooses the call's id."""
        folder = self.folder / "spool" / _safe(thread_id)
        try:
            make_private_folder(folder)
        except OSError as error:
            raise translate_error(folder, error) from error
        return folder.parent / self.spool_name(thread_id, call_id, attempt)

    @staticmethod
    def spool_name(thread_id: str, call_id: str, attempt: int) -> str:
        """Folder and name of a spool, below the folder of all spools."""
        return f"{_safe(thread_id)}/{_safe(call_id)}-{attempt}.out"

    def drop_spools(self, thread_id: str) -> None:
        """Remove what a thread's calls wrote while they ran. Only the process that holds the thread may do that."""
        import shutil  # noqa: PLC0415 - commands that only read do without

        shutil.rmtree(self.folder / "spool" / _safe(thread_id), ignore_errors=True)

    def remove(self, path: Path, until: float) -> int | None:
        """Remove a file that nobody has written or put since a time; its size, or None when it stays."""
        with self._locked(LOCK_EX):
            try:
                status = path.stat()
                if status.st_mtime > until:
                    return None
                path.unlink()
            except OSError:
                return None
        return status.st_size

    def drop_unreferenced(
        self,
        find_referenced: Callable[[], Container[str]],  # noqa: ARG002 - files are listed instead
        until: float,  # noqa: ARG002 - as above
    ) -> list[int]:
        """Delete what is not kept in files, and that nobody names or has stored since a time; returns the sizes."""
        return []

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        """No blob is removed while one is stored; any number of writers may store at once."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _path(self, digest: str) -> Path:
        return self.folder / "objects" / digest[:2] / digest[2:]

    def _write(self, path: Path, content: bytes) -> None:
        """Write under a temporary name first: the blob's name appears with the complete content or not at all."""
        draft = path.with_name(f"{path.name}.{os.urandom(16).hex()}.draft")
        try:
            with os.fdopen(open_private_file(draft), "wb") as file:
                file.write(content)
                file.flush()
                sync(file.fileno())
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)


def require_digest(reference: str) -> str:
    """The digest in a reference.

    Raises:
        StorageError: it is no reference to a blob.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise StorageError(f"{reference!r} is not a reference to a blob (`blob:sha256:` and 64 digits)")
    return match[1]


def _safe(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]


def _damaged(reference: str, path: Path) -> StorageError:
    return StorageError(
        f"{reference!r} is damaged: {str(path)!r} no longer holds what was stored. Restore it from a backup."
    )
