"""Import an exported thread, completely or not at all."""

import base64
import binascii
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from graph_agent.app.reader import read_database
from graph_agent.config.paths import special_file_kind
from graph_agent.errors import UsageError
from graph_agent.inspect import ThreadSummary
from graph_agent.ports import SystemClock
from graph_agent.storage import open_blobs, open_database
from graph_agent.storage.serializer import MessageDecoder
from graph_agent.storage.sqlite.thread_import import (
    Content,
    Destination,
    FileHeader,
    Row,
    import_rows,
    invalid_file,
    named_contents,
    read_parts,
    rename_contents,
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
    exported_workspace: str
    """The folder that the thread worked in where it was exported; nothing is read or written there."""
    unsent: tuple[str, ...] = ()
    """Messages that were still queued when it was exported: they are kept as history and not sent."""


async def import_thread(
    database: Path, source: str, *, as_id: str | None = None, workspace: Path | None = None
) -> Imported:
    """Import a file, or with `-` stdin, under its own id or another. It works in `workspace` from now on,
    by default the current folder.

    The file is read three times, so that nothing is written before all of it was checked, and nobody who works with
    the database waits while it is.

    Raises:
        UsageError: it cannot be read, is no such file, was cut or changed; or the id is taken. Nothing was changed.
        StorageError: the database cannot be used, or the disk is full.
    """
    if as_id is not None and not as_id.strip():
        raise UsageError("--as needs an id that is not blank. Omit it to keep the thread's own id.")
    with _open_file(source) as file:
        found = _check_file(file)
        exported_as, thread_id = found.thread_id, as_id or found.thread_id
        renamed = _renamed_contents(file, found.contents)
        references = {name: _reference(renamed[name]) if name in renamed else name for name in found.contents}
        place = Destination(str((workspace or Path()).resolve()), SystemClock().now(), references)
        blobs = open_blobs(database)
        ids, decoder = (exported_as, thread_id), MessageDecoder()
        async with await open_database(database) as opened:
            await opened.run(lambda connection: require_free(connection, thread_id))
            for part in _parts(file):
                if isinstance(part, Content) and part.data is not None:
                    blobs.put(renamed.get(part.reference) or _decode(part))
            rows = (place.adopt(part) for part in _parts(file) if isinstance(part, Row))
            await opened.write(lambda connection: import_rows(connection, ids, rows, blobs, decoder))
    with read_database(database) as reader:
        thread = reader.thread(thread_id)
    return Imported(thread, exported_as, found.missing, found.workspace, tuple(found.unsent))


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


@dataclass(slots=True)
class _FoundInFile:
    thread_id: str = ""
    workspace: str = ""
    missing: int = 0
    contents: dict[str, frozenset[str]] = field(default_factory=dict)
    """The contents that the file holds by reference, with the references in each."""
    unsent: list[str] = field(default_factory=list)


def _check_file(file: TextIO) -> _FoundInFile:
    found = _FoundInFile()
    for part in _parts(file):
        match part:
            case FileHeader():
                found.thread_id = part.thread_id
            case Content(data=None):
                found.missing += 1
            case Content():
                data = _decode(part)
                if part.reference != _reference(data):
                    raise invalid_file(f"the content {part.reference!r} does not match its name")
                found.contents[part.reference] = named_contents(data)
            case Row(table="threads", sub_agent=""):
                found.workspace = part.values["workspace"]
            case Row(table="inbox") if part.values["taken_at"] is None:
                found.unsent.append(part.values["text"])
            case Row():
                pass
    return found


def _renamed_contents(file: TextIO, contents: Mapping[str, frozenset[str]]) -> dict[str, bytes]:
    """The contents that have to change, because they name one that the file does not hold, or one of these."""
    waiting: set[str] = set()
    while more := {
        name
        for name, named in contents.items()
        if name not in waiting and (named - contents.keys() or named & waiting)
    }:
        waiting |= more
    if not waiting:
        return {}
    parts = (part for part in _parts(file) if isinstance(part, Content) and part.reference in waiting)
    data, renamed = {part.reference: _decode(part) for part in parts}, dict[str, bytes]()
    while waiting:
        ready = {name for name in waiting if not contents[name] & waiting}
        # No content can name itself, in however many steps: its digest would be in what it is the digest of.
        references = {name: _reference(renamed[name]) if name in renamed else name for name in contents}
        renamed |= {name: rename_contents(data[name], references) for name in ready}
        waiting -= ready
    return renamed


def _reference(data: bytes) -> str:
    return f"blob:sha256:{hashlib.sha256(data).hexdigest()}"


def _parts(file: TextIO) -> Iterator[FileHeader | Row | Content]:
    file.seek(0)
    return read_parts(file)


def _decode(content: Content) -> bytes:
    try:
        return base64.b64decode(content.data or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_file(f"the content {content.reference!r} is not in Base64") from error
