"""Whether two patterns of file names can mean the same path. Looks at no file."""

import re
from functools import cache

__all__ = ["may_meet"]

_TOKENS = re.compile(r"\*\*/?|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_ANY = "any"
_MANY = "many"
_CROSSING = ("**", "**/")
_STARS = (_MANY, *_CROSSING)
_MAX_CHARS = 600
"""Of both; what is longer is taken to meet."""


def may_meet(one: str, other: str, *, hides_dots: bool = False) -> bool:
    """Whether some path matches both; `**` crosses folders, a bracket stands for any one character.

    With `hides_dots` the wild signs that begin a name of `one` stand for no dot, as in a shell.
    """
    if len(one) + len(other) > _MAX_CHARS:
        return True
    left, right = _tokens(one), _tokens(other)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(left) or j == len(right):
            return all(token in _STARS for token in (*left[i:], *right[j:]))
        a, b = left[i], right[j]
        is_hidden = hides_dots and b == "." and _begins_name(left, i) and _begins_name(right, j)
        if a in _STARS:
            return meet(i + 1, j) or (_passes(a, b) and not is_hidden and meet(i, j + 1))
        if is_hidden and a == _ANY:
            return False
        if b in _STARS:
            return meet(i, j + 1) or (_passes(b, a) and meet(i + 1, j))
        return _same(a, b) and meet(i + 1, j + 1)

    return meet(0, 0)


def _tokens(pattern: str) -> tuple[str, ...]:
    return tuple(_token(text) for text in _TOKENS.findall(pattern))


def _token(text: str) -> str:
    if text in _CROSSING:
        return text
    if text == "*":
        return _MANY
    return _ANY if text == "?" or len(text) > 1 else text


def _passes(star: str, other: str) -> bool:
    return star in _CROSSING or other != "/"


def _begins_name(tokens: tuple[str, ...], at: int) -> bool:
    return at > 0 and tokens[at - 1] in ("/", "**/")


def _same(a: str, b: str) -> bool:
    if _ANY in (a, b):
        return "/" not in (a, b)
    return a == b
