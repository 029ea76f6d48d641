"""What `echo` and `printf` write, as far as their words tell: it may be fed to a shell."""

import re
from collections.abc import Sequence
from itertools import dropwhile
from posixpath import basename

from policy.words import unescaped

__all__ = ["said"]

_ECHO_OPTION = re.compile("-[neE]+")
_FIELD = re.compile(r"%(%|[-+ #0-9.*]*[a-zA-Z])")

_MOST_USES = 64


def said(words: Sequence[str]) -> str:
    """The text a command writes, with its escapes and without; empty for other programs."""
    program = basename(words[0]) if words else ""
    if program == "echo":
        text = " ".join(dropwhile(_ECHO_OPTION.fullmatch, words[1:]))
    elif program == "printf" and len(words) > 1:
        text = _formatted(words[1], list(words[2:]))
    else:
        return ""
    plain = unescaped(text)
    return text if plain == text else f"{text}\n{plain}"


def _formatted(pattern: str, values: list[str]) -> str:
    if not values or not _FIELD.search(pattern):
        return pattern
    waiting = iter(values)
    # A format is used again until no value is left.
    uses = -(-len(values) // (sum(field != "%" for field in _FIELD.findall(pattern)) or len(values)))
    return _FIELD.sub(lambda field: "%" if field[1] == "%" else next(waiting, ""), pattern * min(uses, _MOST_USES))
