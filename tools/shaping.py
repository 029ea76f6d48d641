"""Results cut to what a model can take in: head, tail, the size, and how to read the rest."""

import logging
from dataclasses import replace

from tools.context import BlobStore
from tools.result import ToolResult

__all__ = ["head_and_tail", "keep", "shape"]

_log = logging.getLogger(__name__)


def keep(data: bytes, blobs: BlobStore | None) -> str | None:
    """The reference under which the data can be read later; None when it cannot be stored, which fails no call."""
    if blobs is None:
        return None
    try:
        return blobs.put(data)
    except OSError:
        _log.warning("an output of %d bytes could not be stored", len(data), exc_info=True)
        return None


def head_and_tail(text: str, limit: int, note: str) -> str:
    """The beginning and the end of a text with a note between; whole lines where the text has lines."""
    head = text[: limit * 2 // 3]
    tail = text[len(text) - limit // 3 :]
    head = head[: head.rfind("\n") + 1] or head
    first_break = tail.find("\n") + 1
    tail = tail[first_break:] if 0 < first_break < len(tail) else tail
    return f"{head.rstrip(chr(10))}\n[… {note} …]\n{tail}"


def shape(result: ToolResult, limit: int, blobs: BlobStore | None) -> ToolResult:
    """The result with an output of bounded length; what is left out can be read through its reference."""
    size = len(result.output)
    if size <= limit:
        return result
    reference = keep(result.output.encode("utf-8", "replace"), blobs)
    how = (
        f'read the rest with read_file(file_path="{reference}", offset=..., limit=...)'
        if reference
        else "narrow the call"
    )
    lines = result.output.count("\n") + 1
    note = f"left out here: the whole output has {size} characters in {lines} lines; {how}"
    metadata = {**result.metadata, "truncated": True, "full_chars": size}
    if reference:
        metadata["blob"] = reference
    return replace(result, output=head_and_tail(result.output, limit, note), metadata=metadata)
