from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tools.file_ops.images import MOST_BYTES, image_result, media_type_of
from tools.file_ops.read_file import ReadFileTool

_PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (_PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"\x89PNG as text", None),
        (b"", None),
    ],
)
def test_images_are_known_by_their_beginning(data: bytes, kind: str | None) -> None:
    assert media_type_of(data) == kind


async def test_reading_an_image_gives_a_line_and_a_reference(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)
    (around.workspace / "a.png").write_bytes(_PNG)

    result = await ReadFileTool().execute(file_path="a.png", context=around.context())

    [image] = result.metadata["images"]
    assert result.output.startswith("a.png is an image: image/png, 48 bytes. To models that see, it is shown")
    assert (image["media_type"], around.blobs.get(image["blob"])) == ("image/png", _PNG)


def test_an_image_that_is_too_large_or_cannot_be_kept_is_only_named(tmp_path: Path) -> None:
    large = image_result(_PNG + b"\0" * MOST_BYTES, "image/png", "big.png", ToolSurroundings(tmp_path).blobs)
    unkept = image_result(_PNG, "image/png", "a.png", None)

    assert ("too large to be shown" in large.output, large.metadata) == (True, {})
    assert ("cannot be shown here" in unkept.output, unkept.metadata) == (True, {})
