"""Files as text without losing a byte: encoding, byte order mark and line endings are found, kept and put back.

Text is held exactly as it decodes, line endings included; decoding and encoding again gives the same bytes.
"""

import codecs
from dataclasses import dataclass

from tools.encodings import guess

__all__ = ["TextForm", "decode", "is_binary", "to_newline"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before utf-16-le, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8192


@dataclass(frozen=True)
class TextForm:
    """How a text is laid down in bytes."""

    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str | None = None
    """The most frequent line ending; None where there is no line ending."""
    errors: str = "strict"
    """How bytes that the encoding does not know are carried through, as codecs name it."""

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this form, its line endings untouched.

        Raises:
            UnicodeEncodeError: the encoding lacks a character.
        """
        return self.mark + text.encode(self.encoding, self.errors)


def decode(data: bytes) -> tuple[str, TextForm]:
    """The text of a file, exactly, and its form. What is not UTF-8 is guessed; see `tools.encodings`."""
    for mark, encoding in _MARKS:
        if data.startswith(mark) and (text := _decoded(data[len(mark) :], encoding)) is not None:
            return text, TextForm(encoding, mark, _majority(text))
    text = _decoded(data, "utf-8")
    if text is not None:
        return text, TextForm("utf-8", b"", _majority(text))
    found = guess(data)
    return found.text, TextForm(found.encoding, b"", _majority(found.text), found.errors)


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file looks like anything but text."""
    if any(data.startswith(mark) for mark, _ in _MARKS):
        return False
    return b"\0" in data[:_SNIFFED_BYTES]


def to_newline(text: str, newline: str | None) -> str:
    """The text with all its line endings turned into this one; None leaves them as they are."""
    if newline is None:
        return text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    # UTF-8 has one spelling for each text; the wide encodings take what they would write otherwise.
    return text if encoding == "utf-8" or text.encode(encoding, "surrogatepass") == data else None


def _majority(text: str) -> str | None:
    if "\r" not in text:
        return "\n" if "\n" in text else None
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    newline = max(counts, key=lambda ending: counts[ending])
    return newline if counts[newline] else None
