"""The encoding of a text that has no byte order mark and is not UTF-8, guessed where its bytes speak clearly.

Whatever is guessed, decoding and encoding again gives the same bytes; the last resort is one character per byte.
"""

import re
from typing import NamedTuple

__all__ = ["Guess", "guess"]

_MULTIBYTE_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
_COMMON_PAIR = re.compile(rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]")
_WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")


class Guess(NamedTuple):
    """An encoding, its way with undecodable bytes, and the text."""

    encoding: str
    errors: str
    text: str


def guess(data: bytes) -> Guess:
    """Of bytes that are not valid UTF-8: UTF-8 with a few stray bytes, GBK, Windows-1252, else Latin-1."""
    candidates = []
    if _is_mostly_utf8(data):
        candidates.append(("utf-8", "surrogateescape"))
    elif _is_gbk(data):
        candidates.append(("gbk", "strict"))
    if _WINDOWS_ONLY.search(data):
        candidates.append(("cp1252", "strict"))
    for encoding, errors in candidates:
        if (text := _exact(data, encoding, errors)) is not None:
            return Guess(encoding, errors, text)
    return Guess("iso-8859-1", "strict", data.decode("iso-8859-1"))


def _is_mostly_utf8(data: bytes) -> bool:
    characters = len(_MULTIBYTE_UTF8.findall(data))
    stray = len(_HIGH.findall(_MULTIBYTE_UTF8.sub(b"", data)))
    return characters > 2 * stray


def _is_gbk(data: bytes) -> bool:
    # An accented letter and what follows it can look like a rare Chinese character, hardly ever like a common one.
    pairs = _PAIR.findall(data)
    common = sum(_COMMON_PAIR.fullmatch(pair) is not None for pair in pairs)
    return len(pairs) >= 2 and common >= 0.8 * len(pairs)


def _exact(data: bytes, encoding: str, errors: str) -> str | None:
    try:
        text = data.decode(encoding, errors)
        return text if text.encode(encoding, errors) == data else None
    except UnicodeError:
        return None
