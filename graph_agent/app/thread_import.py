"""Import an exported thread, completely or not at all."""

import base64
import binascii
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from graph_agent.app.reader import read_database
from graph_agent.config.paths import blob_dir, special_file_kind
from graph_agent.errors import UsageError
from graph_agent.inspect import ThreadSummary
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.serializer import MessageDecoder
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_import import (
    Content,
    FileHeader,
    Row,
    import_rows,
    invalid_file,
    read_parts,
    require_free,
)

__all__ = ["Imported", "import_thread"]


@dataclass(frozen=True, slots=True)
class Imported:
    """The imported thread."""

    thread: ThreadSummary
    exported_as: str
    """The id that the thread had where it was exported."""
    missing: int
    """Contents that were gone already when the file was written."""


async def import_thread(database: Path, source: str, *, as_id: str | None = None) -> Imported:
    """Import a file, or with `-` stdin, under its own id or another.

    The file is read three times, so that nothing is written before all of it was checked, and nobody who works with
    the database waits while it is.

    Raises:
        UsageError: it cannot be read, is no such file, was cut or changed; or the id is taken. Nothing was changed.
        StorageError: the database cannot be used, or the disk is full.
    """
    if as_id is not None and not as_id.strip():
        raise UsageError("--as needs an id that is not blank. Omit it to keep the thread's own id.")
    with _open_file(source) as file:
        exported_as, missing = _check_file(file)
        thread_id = as_id or exported_as
        blobs = FileBlobs(blob_dir(database))
        ids, decoder = (exported_as, thread_id), MessageDecoder()
        async with await Database.open(database) as opened:
            await opened.run(lambda connection: require_free(connection, thread_id))
            for part in _parts(file):
                if isinstance(part, Content) and part.data is not None:
                    blobs.put(_decode(part))
            rows = (part for part in _parts(file) if isinstance(part, Row))
            await opened.write(lambda connection: import_rows(connection, ids, rows, blobs, decoder))
    with read_database(database) as reader:
        return Imported(reader.thread(thread_id), exported_as, missing)


@contextmanager
def _open_file(source: str) -> Iterator[TextIO]:
    if source != "-" and (kind := special_file_kind(Path(source))):
        raise UsageError(f"{source!r} is {kind}, not a file that can be read more than once. Use - for stdin.")
    try:
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogateescape")
            if source == "-"
            else Path(source).open(encoding="utf-8") as file
        ):
            if source == "-":
                shutil.copyfileobj(sys.stdin, file)
            yield file
    except OSError as error:
        raise UsageError(f"{source!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise invalid_file(f"it is not text ({error.reason})") from error


def _check_file(file: TextIO) -> tuple[str, int]:
    """The thread's id, and how many contents are missing."""
    thread_id, missing = "", 0
    for part in _parts(file):
        match part:
            case FileHeader():
                thread_id = part.thread_id
            case Content(data=None):
                missing += 1
            case Content():
                if part.reference != f"blob:sha256:{hashlib.sha256(_decode(part)).hexdigest()}":
                    raise invalid_file(f"the content {part.reference!r} does not match its name")
            case Row():
                pass
    return thread_id, missing


def _parts(file: TextIO) -> Iterator[FileHeader | Row | Content]:
    file.seek(0)
    return read_parts(file)


def _decode(content: Content) -> bytes:
    try:
        return base64.b64decode(content.data or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_file(f"the content {content.reference!r} is not in Base64") from error
