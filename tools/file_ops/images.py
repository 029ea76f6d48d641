"""Images among files: which bytes are an image, whether it is complete, and the result that shows it."""

import struct
import zlib

from tools.base import BlobStore
from tools.result import ToolResult
from tools.running import store_blob

__all__ = ["MAX_BYTES", "image_result", "is_whole_image", "media_type_of"]

_PNG_HEAD = 8
_PNG_FRAME = 12
"""Bytes of a chunk around its content: length, kind, checksum."""
_RIFF_HEAD = 8


def is_whole_image(data: bytes, media_type: str) -> bool:
    """Whether bytes that begin as an image of this kind also end as one.

    A PNG's checksums are compared; of the others, whose frames hold none, the end must be there.
    """
    match media_type:
        case "image/png":
            return _is_whole_png(data)
        case "image/jpeg":
            # Cameras put padding, and phones whole films, behind the end of the picture.
            return b"\xff\xda" in data and b"\xff\xd9" in data[data.index(b"\xff\xda") :]
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case "image/webp":
            return len(data) >= _RIFF_HEAD + int.from_bytes(data[4:8], "little")
        case _:
            return True


def _is_whole_png(data: bytes) -> bool:
    position, has_content = _PNG_HEAD, False
    while position + _PNG_FRAME <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + _PNG_FRAME + length
        if end > len(data) or (position == _PNG_HEAD) != (kind == b"IHDR"):
            return False
        if zlib.crc32(memoryview(data)[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            return False
        if kind == b"IEND":
            return has_content
        has_content = has_content or kind == b"IDAT"
        position = end
    return False


MAX_BYTES = 5 * 1024 * 1024
"""Most providers refuse larger ones."""


def media_type_of(data: bytes) -> str | None:
    """What kind of image the bytes are, of those that models take; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def image_result(data: bytes, media_type: str, given: str, blobs: BlobStore | None) -> ToolResult:
    """A line about the image; `metadata["images"]` has the reference that lets a model see it.

    A broken image is named but never sent: the endpoint would refuse this request and all later ones, because the
    image stays in the conversation.
    """
    line = f"{given} is an image: {media_type}, {len(data)} bytes"
    display = f"{media_type}, {len(data)} bytes"
    if len(data) > MAX_BYTES:
        return ToolResult(
            f"{line}; too large to be shown, {MAX_BYTES} bytes at most. Make a smaller copy.", display
        )
    if not is_whole_image(data, media_type):
        return ToolResult(f"{line}; it is broken or cut off, so it cannot be shown.", f"{display}, broken")
    reference = store_blob(data, blobs)
    if reference is None:
        return ToolResult(f"{line}; it cannot be shown here.", display)
    return ToolResult(
        f"{line}. To models that see, it is shown after the results of these calls.",
        display,
        metadata={"images": [{"blob": reference, "media_type": media_type, "name": given}]},
    )
