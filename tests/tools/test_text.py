import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text import TextForm, decode, guess_encoding, is_binary, to_newline


@pytest.mark.parametrize(
    ("data", "text", "form"),
    [
        (b"", "", TextForm("utf-8", b"", None)),
        (b"a\nb\n", "a\nb\n", TextForm("utf-8", b"", "\n")),
        (b"a\r\nb\r\nc\n", "a\r\nb\r\nc\n", TextForm("utf-8", b"", "\r\n")),
        (b"a\rb\r", "a\rb\r", TextForm("utf-8", b"", "\r")),
        (b"\xef\xbb\xbfa\n", "a\n", TextForm("utf-8", b"\xef\xbb\xbf", "\n")),
        (b"\xff\xfea\x00\n\x00", "a\n", TextForm("utf-16-le", b"\xff\xfe", "\n")),
        (b"caf\xe9\n", "caf\xe9\n", TextForm("iso-8859-1", b"", "\n")),
    ],
)
def test_the_form_of_a_text_is_found(data: bytes, text: str, form: TextForm) -> None:
    assert decode(data) == (text, form)


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"text", False),
        (b"\x7fELF\x00", True),
        (b"\xff\xfea\x00", False),
        (b"", False),
        (b's = "a\x00b"  # a NUL\n', False),
        (b"\0short", True),
        (b"caf\xe9 and more words \0 in Latin-1", True),
        (b"MZ\x90\0\x03 with words behind that make it long", True),
        (b"x" + "\0 é".encode() + "é".encode() * 5000, False),
    ],
)
def test_a_nul_byte_outside_marked_text_makes_a_file_binary(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary


@pytest.mark.parametrize(
    ("newline", "expected"), [("\n", "a\nb\nc\n"), ("\r\n", "a\r\nb\r\nc\r\n"), (None, "a\nb\r\nc\r")]
)
def test_line_endings_are_turned_into_one(newline: str | None, expected: str) -> None:
    assert to_newline("a\nb\r\nc\r", newline) == expected


@given(st.binary())
def test_decoding_or_guessing_and_encoding_again_gives_the_same_bytes(data: bytes) -> None:
    text, form = decode(data)
    found = guess_encoding(data)

    assert form.encode(text) == data
    assert found.text.encode(found.encoding, found.errors) == data


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        ("这是一个测试。\n".encode("gbk"), "gbk", "这是一个测试。\n"),
        ("x = '中文'  # 注释\n".encode("gbk"), "gbk", "x = '中文'  # 注释\n"),
        ("café crème, où ça\n".encode("latin-1"), "iso-8859-1", "café crème, où ça\n"),
        ("Größe für Übermut\n".encode("latin-1"), "iso-8859-1", "Größe für Übermut\n"),
        ("“smart” – 5 €\n".encode("cp1252"), "cp1252", "“smart” – 5 €\n"),
        ("żółć — ok\n".encode() + b"\xff\n", "utf-8", "żółć — ok\n\udcff\n"),
    ],
)
def test_encodings_are_told_apart_where_the_bytes_speak_clearly(data: bytes, encoding: str, text: str) -> None:
    found = guess_encoding(data)

    assert (found.encoding, found.text) == (encoding, text)
