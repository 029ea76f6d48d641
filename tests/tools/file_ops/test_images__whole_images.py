import base64

import pytest

from graph_agent.app.model_trial import red_square
from tools.file_ops.images import is_whole_image

_PNG = red_square()
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
def test_no_beginning_of_an_image_is_a_whole_one(data: bytes, media_type: str, shortest: int) -> None:
    assert [end for end in range(shortest, len(data)) if is_whole_image(data[:end], media_type)] == []


def test_a_png_with_a_changed_byte_anywhere_behind_its_signature_is_not_whole() -> None:
    changed = [_PNG[:at] + bytes([_PNG[at] ^ 1]) + _PNG[at + 1 :] for at in range(8, len(_PNG))]

    assert [at for at, data in enumerate(changed) if is_whole_image(data, "image/png")] == []
