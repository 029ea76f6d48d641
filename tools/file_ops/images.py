"""Images among files: which bytes are one, and what is told of it. Decodes nothing and shows nothing."""

from tools.context import BlobStore
from tools.file_ops.whole_images import is_whole_image
from tools.result import ToolResult
from tools.shaping import keep

__all__ = ["MOST_BYTES", "image_result", "media_type_of"]

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
    reference = keep(data, blobs)
    if reference is None:
        return ToolResult(f"{told}; it cannot be shown here.", display)
    return ToolResult(
        f"{told}. To models that see, it is shown after the results of these calls.",
        display,
        metadata={"images": [{"blob": reference, "media_type": media_type}]},
    )
