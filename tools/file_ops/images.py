"""Images among files: which bytes are one, and what is told of it. Decodes nothing and shows nothing.

Whether an image is whole, as far as its frame shows. Decodes no picture.

A model's endpoint refuses a request over one broken image, and the next ones too, for the image stays in the
conversation: so a broken one is named to the model and never sent.
"""

import struct
import zlib

from tools.context import BlobStore
from tools.result import ToolResult
from tools.running import store_blob

__all__ = ["MOST_BYTES", "image_result", "is_whole_image", "media_type_of"]

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


MOST_BYTES = 5 * 1024 * 1024
"""Larger ones are refused by most providers."""


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
    """A line about the image; `metadata["images"]` has the reference under which it can be shown to a model."""
    told = f"{given} is an image: {media_type}, {len(data)} bytes"
    display = f"{media_type}, {len(data)} bytes"
    if len(data) > MOST_BYTES:
        return ToolResult(
            f"{told}; too large to be shown, {MOST_BYTES} bytes at most. Make a smaller copy.", display
        )
    if not is_whole_image(data, media_type):
        return ToolResult(f"{told}; it is broken or cut off, so it cannot be shown.", f"{display}, broken")
    reference = store_blob(data, blobs)
    if reference is None:
        return ToolResult(f"{told}; it cannot be shown here.", display)
    return ToolResult(
        f"{told}. To models that see, it is shown after the results of these calls.",
        display,
        metadata={"images": [{"blob": reference, "media_type": media_type}]},
    )
