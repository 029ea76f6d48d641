from pathlib import Path

import pytest

from graph_agent.app.model_trial import red_square
from tests.fakes.tool_ports import ToolSurroundings
from tools.file_ops.images import MAX_BYTES, image_result, media_type_of
from tools.file_ops.read_file import ReadFileTool

_PNG = red_square()


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
    assert result.output.startswith(
        f"a.png is an image: image/png, {len(_PNG)} bytes. To models that see, it is shown"
    )
    assert (image["media_type"], around.blobs.get(image["blob"])) == ("image/png", _PNG)


def test_an_image_that_is_too_large_or_cannot_be_kept_is_only_named(tmp_path: Path) -> None:
    large = image_result(_PNG + b"\0" * MAX_BYTES, "image/png", "big.png", ToolSurroundings(tmp_path).blobs)
    unkept = image_result(_PNG, "image/png", "a.png", None)

    assert ("too large to be shown" in large.output, large.metadata) == (True, {})
    assert ("cannot be shown here" in unkept.output, unkept.metadata) == (True, {})


async def test_a_broken_image_is_named_and_never_kept_for_a_model(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)
    (around.workspace / "cut.png").write_bytes(_PNG[:-6])

    result = await ReadFileTool().execute(file_path="cut.png", context=around.context())

    told = f"cut.png is an image: image/png, {len(_PNG) - 6} bytes; it is broken or cut off, so it cannot be shown."
    assert (result.output, result.metadata.get("images")) == (told, None)
