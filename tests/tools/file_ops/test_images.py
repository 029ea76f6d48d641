import base64
from pathlib import Path

import pytest

from graph_agent.app.model_trial import red_square
from tests.fakes.tool_ports import ToolEnvironment
from tools.file_ops.images import MAX_BYTES, image_result, image_size, is_whole_image, media_type_of
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


async def test_a_whole_image_is_shown_by_its_reference_and_a_broken_one_only_named(tmp_path: Path) -> None:
    around = ToolEnvironment(tmp_path)
    (around.workspace / "a.png").write_bytes(_PNG)
    (around.workspace / "cut.png").write_bytes(_PNG[:-6])

    result = await ReadFileTool().execute(file_path="a.png", context=around.context())
    broken = await ReadFileTool().execute(file_path="cut.png", context=around.context())

    [image] = result.metadata["images"]
    line = f"a.png is an image: image/png, {len(_PNG)} bytes. To models that see, it is shown"
    assert result.output.startswith(line)
    assert (image["media_type"], around.blobs.get(image["blob"])) == ("image/png", _PNG)
    line = f"cut.png is an image: image/png, {len(_PNG) - 6} bytes; it is broken or cut off, so it cannot be shown."
    assert (broken.output, broken.metadata.get("images")) == (line, None)


def test_an_image_that_is_too_large_or_cannot_be_kept_is_only_named(tmp_path: Path) -> None:
    large = image_result(_PNG + b"\0" * MAX_BYTES, "image/png", "big.png", ToolEnvironment(tmp_path).blobs)
    unkept = image_result(_PNG, "image/png", "a.png", None)

    assert ("too large to be shown" in large.output, large.metadata) == (True, {})
    assert ("cannot be shown here" in unkept.output, unkept.metadata) == (True, {})


_JPEG = b"\xff\xd8\xff\xe0head\xff\xda\x00\x08picture\xff\xd9"
_GIF = b"GIF89a" + b"picture" + b";"
_WEBP = b"RIFF" + (12).to_bytes(4, "little") + b"WEBPVP8 body"
_SMALLEST_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (_PNG, "image/png"),
        (_PNG + b"what a program left behind it", "image/png"),
        (_SMALLEST_PNG, "image/png"),
        (_JPEG, "image/jpeg"),
        (_JPEG + b"\0\0 a film", "image/jpeg"),
        (_GIF, "image/gif"),
        (_GIF + b"\0\0", "image/gif"),
        (_WEBP, "image/webp"),
    ],
)
def test_a_whole_image_is_whole_also_with_something_behind_it(data: bytes, media_type: str) -> None:
    assert is_whole_image(data, media_type)


@pytest.mark.parametrize(
    ("data", "media_type", "shortest"),
    [(_PNG, "image/png", 8), (_JPEG, "image/jpeg", 3), (_GIF, "image/gif", 6), (_WEBP, "image/webp", 12)],
)
def test_no_beginning_of_an_image_and_no_changed_png_is_a_whole_one(
    data: bytes, media_type: str, shortest: int
) -> None:
    changed = [_PNG[:at] + bytes([_PNG[at] ^ 1]) + _PNG[at + 1 :] for at in range(8, len(_PNG))]

    assert [end for end in range(shortest, len(data)) if is_whole_image(data[:end], media_type)] == []
    assert [at for at, png in enumerate(changed) if is_whole_image(png, "image/png")] == []


@pytest.mark.parametrize(
    ("data", "media_type", "size"),
    [
        (_PNG, "image/png", (32, 32)),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03", "image/jpeg", (640, 480)),
        (b"GIF89a\x80\x02\xe0\x01", "image/gif", (640, 480)),
        (b"RIFF....WEBPVP8X" + bytes(8) + b"\x7f\x02\0\xdf\x01\0", "image/webp", (640, 480)),
        (b"RIFF....WEBPVP8L" + bytes(5) + (639 | 479 << 14).to_bytes(4, "little"), "image/webp", (640, 480)),
        (b"RIFF....WEBPVP8 " + bytes(10) + b"\x80\x02\xe0\x01", "image/webp", (640, 480)),
        (b"\xff\xd8\xff\xe0", "image/jpeg", None),
        (b"GIF89a", "image/gif", None),
    ],
)
def test_the_size_of_an_image_is_read_from_its_head(
    data: bytes, media_type: str, size: tuple[int, int] | None
) -> None:
    assert image_size(data, media_type) == size
