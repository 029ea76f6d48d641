"""Words and characters that mean something to a shell, or hide something from a reader."""

import unicodedata

__all__ = ["RESERVED", "is_invisible"]

_CONDITIONS = ("!", "[[", "]]", "case", "elif", "else", "esac", "fi", "if", "in", "select", "then")
_GROUPS = ("{", "}", "coproc", "do", "done", "for", "function", "time", "until", "while")
RESERVED = frozenset((*_CONDITIONS, *_GROUPS))


def is_invisible(char: str) -> bool:
    """Whether a character is a control or invisible one, newline and tab excepted."""
    return char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
