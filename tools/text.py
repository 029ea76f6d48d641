"""Files as text without losing a byte: encoding, byte order mark and line endings are detected, kept and restored.

Text is held exactly as it decodes, including line endings; decoding and encoding again gives the same bytes. The
encoding of bytes that have no byte order mark and are not UTF-8 is guessed; the last resort is one character per
byte.
"""

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["GuessedText", "TextForm", "decode", "format_count", "guess_encoding", "is_binary", "to_newline"]

_MULTIBYTE_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
_COMMON_PAIR = re.compile(rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]")
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")


def format_count(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun, in the plural unless it is one."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


class GuessedText(NamedTuple):
    """An encoding, its error handler, and the text."""

    encoding: str
    errors: str
    text: str


def guess_encoding(data: bytes) -> GuessedText:
    """Decode bytes that are not valid UTF-8: UTF-8 with a few stray bytes, GBK, Windows-1252, else Latin-1."""
    candidates = []
    stray = len(_HIGH.findall(_MULTIBYTE_UTF8.sub(b"", data)))
    pairs = _PAIR.findall(data)
    # An accented letter and the next byte can look like a rare Chinese character, hardly ever like a common one.
    common = sum(_COMMON_PAIR.fullmatch(pair) is not None for pair in pairs)
    if len(_MULTIBYTE_UTF8.findall(data)) > 2 * stray:
        candidates.append(("utf-8", "surrogateescape"))
    elif len(pairs) >= 2 and common >= 0.8 * len(pairs):
        candidates.append(("gbk", "strict"))
    if _WINDOWS_ONLY.search(data):
        candidates.append(("cp1252", "strict"))
    for encoding, errors in candidates:
        with suppress(UnicodeError):
            text = data.decode(encoding, errors)
            if text.encode(encoding, errors) == data:
                return GuessedText(encoding, errors, text)
    return GuessedText("iso-8859-1", "strict", data.decode("iso-8859-1"))


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before utf-16-le, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8192
_BYTES_PER_NUL = 16
"""A text has at most one NUL in so many bytes."""
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""What hardly any text holds: all control characters but white space and ESC."""


@dataclass(frozen=True)
class TextForm:
    """How a text is encoded."""

    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str | None = None
    """The most frequent line ending; None if there is none."""
    errors: str = "strict"
    """The error handler, which keeps bytes that the encoding does not know."""

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this form; its line endings are not changed.

        Raises:
            UnicodeEncodeError: the encoding lacks a character.
        """
        return self.mark + text.encode(self.encoding, self.errors)


def decode(data: bytes) -> tuple[str, TextForm]:
    """The exact text of a file, and its form."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark) and (text := _decoded(data[len(mark) :], encoding)) is not None:
            return text, TextForm(encoding, mark, _majority(text))
    text = _decoded(data, "utf-8")
    if text is not None:
        return text, TextForm("utf-8", b"", _majority(text))
    encoding, errors, text = guess_encoding(data)
    return text, TextForm(encoding, b"", _majority(text), errors)


def is_binary(data: bytes) -> bool:
    """Whether the beginning of a file does not look like text; a source file may have a few NUL characters."""
    if any(data.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS):
        return False
    start = data[:_SNIFFED_BYTES]
    zeros = start.count(0)
    if not zeros:
        return False
    if zeros * _BYTES_PER_NUL > len(start) or _CONTROLS.search(start):
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return True
    return False


def to_newline(text: str, newline: str | None) -> str:
    """The text with all its line endings converted to this one; None leaves them as they are."""
    return text if newline is None else text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)


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
