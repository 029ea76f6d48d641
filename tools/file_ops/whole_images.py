"""Whether an image is whole, as far as its frame shows. Decodes no picture.

A model's endpoint refuses a request over one broken image, and the next ones too, for the image stays in the
conversation: so a broken one is named to the model and never sent.
"""

import struct
import zlib

__all__ = ["is_whole_image"]

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
