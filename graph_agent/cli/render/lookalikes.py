"""Words that mix alphabets, so that a letter may pass for another. Says which; knows no page."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["mixed_words"]

_WORD = re.compile(r"\w+")
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")


def mixed_words(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each word with Latin letters beside others that may look like them, and the names of those others."""
    seen: set[str] = set()
    for text in filter(lambda value: isinstance(value, str) and not value.isascii(), arguments.values()):
        for word in _WORD.findall(text):
            strange = {char for char in word if _alphabet(char) not in ("", "LATIN")}
            if word not in seen and strange and any(_alphabet(char) == "LATIN" for char in word):
                seen.add(word)
                yield word, ", ".join(f"U+{ord(char):04X} {unicodedata.name(char)}" for char in sorted(strange))


def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "")
    return next((alphabet for alphabet in _ALPHABETS if name.startswith(alphabet)), "")
