"""Images among files: which bytes are an image, whether it is complete, and the result that shows it."""

import struct
import zlib

from tools.base import BlobStore
from tools.result import ToolResult
from tools.running import store_blob

__all__ = ["MAX_BYTES", "image_result", "image_size", "is_whole_image", "media_type_of"]

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


def image_size(data: bytes, media_type: str) -> tuple[int, int] | None:
    """Width and height as the head of an image states them; None where it does not."""
    try:
        match media_type:
            case "image/png":
                width, height = struct.unpack_from(">II", data, 16)
            case "image/gif":
                width, height = struct.unpack_from("<HH", data, 6)
            case "image/webp":
                width, height = _webp_size(data)
            case _:
                width, height = _jpeg_size(data)
    except (struct.error, IndexError):
        return None
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while True:
        marker, length = struct.unpack_from(">HH", data, position)
        if 0xFFC0 <= marker <= 0xFFCF and marker not in (0xFFC4, 0xFFC8, 0xFFCC):
            height, width = struct.unpack_from(">HH", data, position + 5)
            return width, height
        position += 2 + length


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


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
