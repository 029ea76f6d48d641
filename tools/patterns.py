"""Patterns: regular expressions with limits on their size and time, and globs with `**`, `*`, `?`, sets and braces.

In a glob, a set such as `[id]` also matches itself: web frameworks name folders like this, and models write such
names as they are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import regex

__all__ = [
    "BadGlob",
    "BadPattern",
    "GlobPattern",
    "Pattern",
    "RootedPattern",
    "compile_pattern",
    "enter_literal_folders",
    "find_spans",
    "literal_prefix",
    "root_pattern",
]

_SECONDS = 2.0
_MAX_STEPS = 200_000
"""Counted repetitions are expanded when compiled: a few characters can demand all memory."""

_MAX_ALTERNATIVES = 256
_WILDCARD = re.compile(r"[*?\[{]")
_BRACE = re.compile(r"(?<!\\)\{([^{}]*,[^{}]*)\}")
_PART_PIECE = re.compile(r"\\(.)|\*+|\?|\[([!^]?)(\]?[^\]]*)\]|.", re.DOTALL)
_EVERYTHING = frozenset(("**", "**/*", "**/**"))
_REGEX_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\{(\d{1,12})[^}]*\}|.", re.DOTALL)

Pattern = regex.Pattern[str]


class BadPattern(Exception):
    """The pattern cannot be used; the message says why."""


def compile_pattern(pattern: str, *, multiline: bool = True, dot_matches_newline: bool = False) -> Pattern:
    """Compile the pattern; `^` and `$` match at line ends unless `multiline` is false.

    Raises:
        BadPattern: it is not a regular expression, or too large.
    """
    if (steps := _steps(pattern)) > _MAX_STEPS:
        limit = f"expanded it has {steps:,} steps, at most {_MAX_STEPS:,} are allowed"
        raise BadPattern(f"{pattern!r} repeats too often: {limit}.")
    flags = (regex.MULTILINE if multiline else 0) | (regex.DOTALL if dot_matches_newline else 0)
    try:
        return regex.compile(pattern, flags)
    except regex.error as error:
        raise BadPattern(f"{pattern!r} is not a valid regular expression: {error}.") from error


def find_spans(pattern: Pattern, text: str, seconds: float = _SECONDS) -> Iterator[tuple[int, int]]:
    """Where the pattern matches, in order, without overlaps.

    Raises:
        BadPattern: it takes too long.
    """
    try:
        for found in pattern.finditer(text, timeout=seconds, concurrent=True):
            yield found.span()
    except TimeoutError as error:
        raise BadPattern(
            f"{pattern.pattern!r} was stopped after {seconds:g} seconds; write it without nested repetitions."
        ) from error


def _steps(pattern: str) -> int:
    """The approximate length of the pattern with its counted repetitions expanded."""
    levels = [(0, 0)]
    for piece in _REGEX_PIECE.finditer(pattern):
        before, newest = levels[-1]
        if piece[1]:
            levels[-1] = before, newest * int(piece[1])
        elif piece[0] == "(":
            levels.append((0, 0))
        elif piece[0] == ")" and len(levels) > 1:
            levels.pop()
            levels[-1] = sum(levels[-1]), before + newest
        else:
            levels[-1] = before + newest, 1
    return sum(map(sum, levels))


class BadGlob(ValueError):
    """The pattern cannot be used; the message says why."""


@dataclass(frozen=True)
class RootedPattern:
    """A pattern and the folder it is relative to."""

    folder: str
    pattern: str


class GlobPattern:
    """One pattern, its braces expanded; without a slash it matches names at any depth.

    Raises:
        BadGlob: it is empty, climbs with `..`, or has too many alternatives.
    """

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise BadGlob("The pattern is empty; write one such as **/*.py.")
        alternatives = [_relative(one) for one in _expanded(text)]
        self._patterns = [re.compile(_as_regex(one), re.DOTALL) for one in alternatives]
        # A pattern that applies at any depth needs only the name.
        deep = [one.removeprefix("**/") for one in alternatives if one.startswith("**/")]
        is_anywhere = len(deep) == len(alternatives) and not any("/" in one or "**" in one for one in deep)
        self._anywhere = re.compile("|".join(map(_part, deep)), re.DOTALL) if is_anywhere else None
        self._is_everything = not _EVERYTHING.isdisjoint(alternatives)
        parts = {part for one in alternatives for part in one.split("/") if part}
        self._literal = {re.sub(r"\\(.)", r"\1", part) for part in parts if not _WILDCARD.search(part)}
        self._dotted = [re.compile(_part(part), re.DOTALL) for part in parts if part.startswith(".")]

    def matches(self, path: str) -> bool:
        """Whether a path relative to the folder of the search matches as a whole."""
        return any(one.fullmatch(path) for one in self._patterns)

    def among(self, prefix: str, names: list[str]) -> list[str]:
        """Of the names in a folder, given by its relative path with a slash at its end, those that match."""
        if self._is_everything:
            return names
        if self._anywhere is not None:
            fits = self._anywhere.fullmatch
            return [name for name in names if fits(name)]
        return [name for name in names if self.matches(prefix + name)]

    def names(self, entry: str) -> bool:
        """Whether a part of the pattern is exactly this name, or begins with a dot and matches it."""
        return entry in self._literal or any(one.fullmatch(entry) for one in self._dotted)


def root_pattern(folder: str, pattern: str) -> RootedPattern:
    """Move the leading folders of an absolute, `~` or `..` pattern from the pattern to the folder."""
    if not pattern.startswith(("/", "~", "../")):
        return RootedPattern(folder, pattern)
    parts = pattern.split("/")
    wildcard = next((at for at, part in enumerate(parts) if _WILDCARD.search(part)), len(parts) - 1)
    start = "/".join(parts[:wildcard]) or "/"
    base = f"{folder.rstrip('/')}/{start}" if pattern.startswith("../") and folder != "." else start
    return RootedPattern(base, "./" + "/".join(parts[wildcard:]))


def literal_prefix(pattern: str) -> str:
    """The folders a pattern names before its first wildcard; the whole pattern if it has none."""
    parts = pattern.split("/")
    wildcard = next((at for at, part in enumerate(parts) if _WILDCARD.search(part) or "\\" in part), len(parts))
    return "/".join(parts[:wildcard])


def enter_literal_folders(place: RootedPattern) -> RootedPattern:
    """The same search, started in the folder that the pattern names before its first wildcard or its last part."""
    named = literal_prefix(place.pattern.rpartition("/")[0])
    below = place.pattern[len(named) :].removeprefix("/") or "**"
    return RootedPattern(f"{place.folder.rstrip('/')}/{named}", f"./{below}") if named not in ("", ".") else place


def _relative(text: str) -> str:
    here = text.startswith("./")
    while text.startswith("./"):
        text = text[2:]
    if ".." in text.split("/"):
        raise BadGlob(f"{text!r} contains '..'; give the folder to start in as path.")
    text = re.sub("//+", "/", text.lstrip("/")) + ("**" if text.endswith("/") else "")
    return text if here or "/" in text else f"**/{text}"


def _expanded(text: str) -> list[str]:
    done: list[str] = []
    pending = [text]
    while pending:
        one = pending.pop(0)
        # The innermost brace; one without a comma is a plain character, as in the shell.
        if brace := _BRACE.search(one):
            pending += [one[: brace.start()] + choice + one[brace.end() :] for choice in brace[1].split(",")]
        else:
            done.append(one)
        if len(done) + len(pending) > _MAX_ALTERNATIVES:
            raise BadGlob(f"{text!r} has more than {_MAX_ALTERNATIVES} alternatives; ask for fewer at a time.")
    return done


def _as_regex(text: str) -> str:
    *folders, last = text.split("/")
    above = ("(?:[^/]+/)*" if part == "**" else f"{_part(part)}/" for part in folders)
    return "".join([*above, ".+" if last == "**" else _part(last)])


def _part(text: str) -> str:
    """The expression for a part of a path, that is, for one name."""
    return _PART_PIECE.sub(_piece, text)


def _piece(found: re.Match[str]) -> str:
    whole, escaped, negated, members = found[0], found[1], found[2], found[3]
    if whole[0] in "*?":
        return "[^/]*" if whole[0] == "*" else "[^/]"
    if members is None:
        return re.escape(escaped or whole)
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", members)
    expression = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(expression)
    except re.error as error:
        raise BadGlob(f"{whole!r} is not a valid set of characters: {error}.") from error
    return f"(?:{expression}|{re.escape(whole)})"
