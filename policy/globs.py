"""Whether two patterns of file names can mean the same path. Looks at no file."""

import re
from functools import cache

__all__ = ["may_meet"]

_TOKENS = re.compile(r"\*\*/?|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_ANY = "any"
_MANY = "many"
_MAX_CHARS = 600
"""Of both; what is longer is taken to meet."""


def may_meet(one: str, other: str) -> bool:
    """Whether some path matches both; `**` crosses folders, a bracket stands for any one character."""
    if len(one) + len(other) > _MAX_CHARS:
        return True
    left, right = _tokens(one), _tokens(other)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(left) or j == len(right):
            return all(token in (_MANY, "**") for token in (*left[i:], *right[j:]))
        a, b = left[i], right[j]
        if a in (_MANY, "**"):
            return meet(i + 1, j) or (_passes(a, b) and meet(i, j + 1))
        if b in (_MANY, "**"):
            return meet(i, j + 1) or (_passes(b, a) and meet(i + 1, j))
        return _same(a, b) and meet(i + 1, j + 1)

    return meet(0, 0)


def _tokens(pattern: str) -> tuple[str, ...]:
    return tuple(_token(text) for text in _TOKENS.findall(pattern))


def _token(text: str) -> str:
    if text.startswith("**"):
        return "**"
    if text == "*":
        return _MANY
    return _ANY if text == "?" or len(text) > 1 else text


def _passes(star: str, other: str) -> bool:
    return star == "**" or other != "/"


def _same(a: str, b: str) -> bool:
    if _ANY in (a, b):
        return "/" not in (a, b)
    return a == b
