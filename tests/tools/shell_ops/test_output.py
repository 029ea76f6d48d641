import pytest

from tools.shell_ops.output import clean_output, incomplete_tail_length


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"\x1b]0;title\x07x", "x"),
        (b"\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b" 10%\r 50%\r100%\n", "100%\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"50%\r", "50%"),
        (b"ok\xf0\n", "ok\ufffd\n"),
        (b"a\x00b\x07c\td", "abc\td"),
        ("é→".encode(), "é→"),
    ],
)
def test_output_is_made_readable(raw: bytes, text: str) -> None:
    assert clean_output(raw) == text


@pytest.mark.parametrize(
    ("raw", "held_back"),
    [
        (b"abc", 0),
        (b"", 0),
        ("é".encode(), 0),
        ("é".encode()[:1], 1),
        ("→".encode()[:2], 2),
        (b"\xf0\x9f\x98", 3),
        (b"\x80" * 9, 0),
    ],
)
def test_a_character_that_may_go_on_is_held_back(raw: bytes, held_back: int) -> None:
    assert incomplete_tail_length(raw) == held_back
