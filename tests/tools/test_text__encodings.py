import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text import guess_encoding


@given(st.binary())
def test_whatever_is_guessed_gives_the_same_bytes_again(data: bytes) -> None:
    found = guess_encoding(data)

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
