"""One replacement in a text: where it matches, the exact text that goes there, or why it cannot be made.

Lines that stay keep their bytes; new lines get the line endings and the indentation of their surroundings.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple
from unicodedata import normalize

from tools.patterns import BadPattern, compile_pattern, find_spans

__all__ = [
    "LEVELS",
    "Level",
    "Mode",
    "PlainText",
    "ReplaceError",
    "ReplaceResult",
    "Replacement",
    "common_ends",
    "describe_nearest",
    "find_similar",
    "merge_lines",
    "reindent",
    "replace_text",
    "split_lines",
]

Mode = Literal["exact", "flexible", "regex"]
Span = tuple[int, int]

_BLANKS = " \t"
_INDENT_UNITS = ("\t", "    ", "  ", "        ", "   ")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_NUMBERED = re.compile(r"(?m)\A\s*\d+\t")


_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""A blank and all that look like one: what Unicode calls space separators."""
_BLANK = f"[\\t{_SPACES}]"
_ALIKE = ('"“”„‟«»', "'‘’‚‛`´", "-‐‑‒–—−", _SPACES)
_CLASS_OF = {char: f"[{re.escape(group)}]" for group in _ALIKE for char in group}


class ReplaceError(Exception):
    """The text stays as it is; the message says why."""


@dataclass(frozen=True)
class Replacement:
    """What is to be replaced by what."""

    old: str
    new: str
    replace_all: bool = False
    mode: Mode = "flexible"


@dataclass(frozen=True)
class ReplaceResult:
    """The new text."""

    text: str
    count: int
    note: str = ""
    """What to know where the match was not exact."""


@dataclass(frozen=True)
class PlainText:
    """A text whose every line ending is `\\n`, and the way back to the text it was made of."""

    raw: str
    text: str
    pairs: tuple[int, ...] = ()
    """Where in `text` the line endings are that take two characters in `raw`."""

    @classmethod
    def of(cls, raw: str) -> "PlainText":
        """The plain view of a text."""
        if "\r" not in raw:
            return cls(raw, raw)
        pairs = tuple(found.start() - count for count, found in enumerate(re.finditer("\r\n", raw)))
        return cls(raw, raw.replace("\r\n", "\n").replace("\r", "\n"), pairs)

    def raw_span(self, start: int, end: int) -> Span:
        """The same place in the raw text."""
        return start + bisect_left(self.pairs, start), end + bisect_left(self.pairs, end)


class Level(NamedTuple):
    """What a search ignores."""

    name: str
    """In words: `… was ignored`."""
    ignores_line_ends: bool = False
    ignores_blanks: bool = False


LEVELS = (
    Level("the form of quotes, dashes or blanks"),
    Level("white space at line ends", ignores_line_ends=True),
    Level("white space", ignores_line_ends=True, ignores_blanks=True),
)
"""From strict to loose."""


@dataclass(frozen=True)
class _Match:
    spans: list[Span]
    """In the plain text."""
    new: str
    note: str = ""
    level: Level | None = None


def replace_text(text: str, wanted: Replacement, newline: str | None) -> ReplaceResult:
    """The text with the replacement made; line endings of new lines become `newline`.

    Raises:
        ReplaceError: nothing matches, several places match, or nothing would change.
    """
    if not wanted.old:
        raise ReplaceError("old_string is empty; give the text to replace, or use write_file for a whole file.")
    if wanted.old == wanted.new and wanted.mode != "regex":
        raise ReplaceError("old_string and new_string are the same; nothing would change.")
    plain = PlainText.of(text)
    if wanted.mode == "regex":
        match = _match_pattern(plain.text, wanted)
    elif (wanted.mode == "exact" or "\r" in wanted.old) and wanted.old in text:
        # Line endings are part of what is to be matched: the raw text is searched, as it stands.
        plain = PlainText(text, text)
        match = _Match(_exact_spans(text, wanted.old, wanted), wanted.new)
        _require_unique(match.spans, text, wanted)
    else:
        match = _match_text(plain, wanted)
    result = _replace_matches(plain, match, wanted, newline)
    if result.text == text:
        raise ReplaceError("the file already has the new text there; nothing would change.")
    return result


def _match_pattern(text: str, wanted: Replacement) -> _Match:
    try:
        spans = [span for span in find_spans(compile_pattern(wanted.old), text) if span[0] < span[1]]
    except BadPattern as bad:
        raise ReplaceError(str(bad)) from bad
    if not spans:
        raise ReplaceError(f"the pattern {wanted.old!r} matches no text.")
    _require_unique(spans, text, wanted)
    return _Match(spans, wanted.new)


def _match_text(plain: PlainText, wanted: Replacement) -> _Match:
    text, old = plain.text, PlainText.of(wanted.old).text
    if old in text:
        spans = _exact_spans(text, old, wanted)
        is_raw = all(plain.raw[slice(*plain.raw_span(*span))] == wanted.old for span in spans)
        if is_raw or wanted.mode != "exact":
            _require_unique(spans, text, wanted)
            return _Match(spans, wanted.new, "" if is_raw else _ignored("the kind of line endings"))
    if wanted.mode == "flexible":
        for level in LEVELS:
            if spans := find_similar(old, text, level):
                _require_unique(spans, text, wanted)
                return _Match(spans, wanted.new, _ignored(level.name), level)
        if old.endswith("\n") and len(old) > 1 and not text.endswith("\n") and text.endswith(old[:-1]):
            note = "The file has no newline at its end and still has none."
            new = PlainText.of(wanted.new).text.removesuffix("\n")
            return _Match([(len(text) - len(old) + 1, len(text))], new, note)
    raise ReplaceError(_explain_no_match(text, old, wanted))


def _exact_spans(text: str, old: str, wanted: Replacement) -> list[Span]:
    """Every place; overlapping ones count as several unless all are replaced."""
    spans, at = [], text.find(old)
    while at >= 0:
        spans.append((at, at + len(old)))
        at = text.find(old, at + (len(old) if wanted.replace_all else 1))
    return spans


def _require_unique(spans: list[Span], text: str, wanted: Replacement) -> None:
    if len(spans) == 1 or wanted.replace_all:
        return
    breaks = [match.start() for match in re.finditer("\n", text[: spans[min(len(spans), 5) - 1][0]])]
    lines = ", ".join(str(bisect_right(breaks, start) + 1) for start, _ in spans[:5])
    more = ", …" if len(spans) > 5 else ""
    raise ReplaceError(
        f"old_string matches {len(spans)} places (lines {lines}{more}); include more of the text around "
        "the one you mean, or set replace_all."
    )


def _ignored(what: str) -> str:
    return f"The match was not exact: {what} was ignored."


def _explain_no_match(text: str, old: str, wanted: Replacement) -> str:
    if not old.strip():
        return "old_string is only white space, and the file has no such white space."
    if _NUMBERED.match(old):
        return "old_string begins with a line number, as read_file shows them; leave the numbers out."
    reason = "old_string was not found."
    if wanted.mode == "exact" and any(find_similar(old, text, level) for level in LEVELS):
        reason = "old_string was found only with other white space, quotes or line endings; try mode=flexible."
    elif old.endswith("\n") and text.endswith(old[:-1]):
        reason = "old_string ends with a newline, but the file has no newline at its end."
    elif old.casefold() in text.casefold():
        reason = "old_string was found only with other upper and lower case."
    nearest = describe_nearest(old, text) or "No similar text was found; read the file again."
    return f"{reason} Nothing was written. {nearest}"


def _replace_matches(plain: PlainText, match: _Match, wanted: Replacement, newline: str | None) -> ReplaceResult:
    is_loose = match.level is not None and match.level.ignores_line_ends
    old = PlainText.of(wanted.old).text
    parts, at = [], 0
    for start, end in match.spans:
        # Where white space was ignored, the indentation before the match belongs to what is replaced.
        line_start = plain.text.rfind("\n", 0, start) + 1
        is_indented = is_loose and not plain.text[line_start:start].strip(_BLANKS)
        begin = line_start if is_indented else start
        raw_start, raw_end = plain.raw_span(begin, end)
        found = plain.raw[raw_start:raw_end]
        if wanted.mode == "regex":
            old = plain.text[start:end]
        before = plain.text[begin:start] if is_loose else None
        parts += [plain.raw[at:raw_start], _new_piece(old, found, match.new, newline, before)]
        at = raw_end
    return ReplaceResult("".join([*parts, plain.raw[at:]]), len(match.spans), match.note)


def _new_piece(old: str, found: str, new: str, newline: str | None, before: str | None) -> str:
    """The text that replaces `found`; `before` is given where indentation was ignored."""
    old_lines, found_lines = old.split("\n"), split_lines(found)
    new_lines = PlainText.of(new).text.split("\n")
    if before is None:
        return merge_lines(old_lines, found_lines, new_lines, newline)
    there = [line for line, _ in found_lines]
    moved = _reindent_after(before, old_lines, there, new_lines)
    if moved is None:
        raise ReplaceError(
            "it matches only if indentation is ignored, and the new lines cannot be indented like the file "
            "without guessing; read the file and give both texts with its own indentation."
        )
    # A line that stays is the file's own, with all that was ignored in it.
    own = dict(zip(old_lines, there, strict=True))
    kept = [own.get(line, shifted) for line, shifted in zip(new_lines, moved, strict=True)]
    return merge_lines(there, found_lines, kept, newline)


def _reindent_after(before: str, old: list[str], found: list[str], new: list[str]) -> list[str] | None:
    if moved := reindent(old, found, new):
        return moved
    # The first line may have been given without its indentation, the others with theirs.
    if not before or old[0][:1] in _BLANKS or new[0][:1] in _BLANKS:
        return None
    following = reindent([before, *old[1:]], [before, *found[1:]], new[1:])
    mixes = any(set(_indent_of(line)) - set(before) for line in new[1:] if line.strip())
    return None if following is None or mixes else [before + new[0], *following]


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines with their endings; the last one has none and may be empty."""
    lines = [(found[1], found[2]) for found in _LINE.finditer(text)]
    # A text that ends in an unfinished line matches once more, emptily, behind it.
    return lines[:-1] if len(lines) > 1 and not lines[-2][1] else lines


def common_ends(one: list[str], other: list[str]) -> tuple[int, int]:
    """How many items two lists share at their beginnings, and at their ends behind that."""
    room = min(len(one), len(other))
    head = next((at for at in range(room) if one[at] != other[at]), room)
    room -= head
    tail = next((at for at in range(room) if one[-1 - at] != other[-1 - at]), room)
    return head, tail


def merge_lines(old: list[str], found: list[tuple[str, str]], new: list[str], newline: str | None) -> str:
    """New lines in place of `found`, which `old` described line by line.

    A line that stays keeps its bytes. The others keep the line endings there if their number stays, else they get
    `newline`.
    """
    head, tail = common_ends(old, new)
    middle, gone = new[head : len(new) - tail], found[head : len(found) - tail]
    majority = newline or "\n"
    ends = [end for _, end in gone] if len(middle) == len(gone) else [majority] * len(middle)
    lines = [*found[:head], *zip(middle, ends, strict=True), *(found[len(found) - tail :] if tail else [])]
    return "".join(line + (end or majority) for line, end in lines[:-1]) + lines[-1][0]


def reindent(old: list[str], found: list[str], new: list[str]) -> list[str] | None:
    """The new lines indented as the found ones are, which `old` described line by line.

    None if no single rule explains the difference, or the result would mix tabs and blanks unlike the file.
    """
    pairs = [
        (_indent_of(mine), _indent_of(theirs))
        for mine, theirs in zip(old, found, strict=True)
        if theirs.strip(_BLANKS)
    ]
    rule = next(
        (rule for rule in _indent_rules(pairs) if all(rule(mine) == theirs for mine, theirs in pairs)), None
    )
    if rule is None:
        return None
    lines, used = [], {char for _, theirs in pairs for char in theirs}
    for line in new:
        if not line.strip(_BLANKS):
            lines.append(line)
            continue
        indent = rule(_indent_of(line))
        if indent is None or (used and not set(indent) <= used):
            return None
        lines.append(indent + line.lstrip(_BLANKS))
    return lines


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


_IndentRule = Callable[[str], str | None]


def _indent_rules(pairs: list[tuple[str, str]]) -> list[_IndentRule]:
    """Ways in which the indentation of the one may become that of the other, the most likely first."""
    if not pairs:
        return [lambda indent: indent]
    mine, theirs = pairs[0]
    deeper = theirs[: len(theirs) - len(mine)] if theirs.endswith(mine) else ""
    shallower = mine[: len(mine) - len(theirs)] if mine.endswith(theirs) else ""
    base, target = _common_start([pair[0] for pair in pairs]), _common_start([pair[1] for pair in pairs])
    units = list(product(_INDENT_UNITS, _INDENT_UNITS))
    return [
        lambda indent: deeper + indent,
        lambda indent: indent.removeprefix(shallower) if indent.startswith(shallower) else None,
        *(_unit_rule("", "", *pair) for pair in units),
        *(_unit_rule(base, target, *pair) for pair in units),
        dict(pairs).get,
    ]


def _common_start(indents: list[str]) -> str:
    shortest = min(indents, key=len)
    while not all(indent.startswith(shortest) for indent in indents):
        shortest = shortest[:-1]
    return shortest


def _unit_rule(base: str, target: str, mine: str, theirs: str) -> _IndentRule:
    """Behind a common base, each unit of indentation becomes one of the other kind."""

    def rule(indent: str) -> str | None:
        behind = indent[len(base) :]
        count = len(behind) // len(mine)
        return target + theirs * count if indent.startswith(base) and behind == mine * count else None

    return rule


def find_similar(wanted: str, text: str, level: Level) -> list[tuple[int, int]]:
    """Where the text, whose line endings are plain, matches what is wanted on this level."""
    if not wanted.strip():
        return []
    return [found.span() for found in re.finditer(_pattern(wanted, level), text)]


def _pattern(wanted: str, level: Level) -> str:
    lines = wanted.split("\n")
    join = rf"{_BLANK}*\n" if level.ignores_line_ends else r"\n"
    if not level.ignores_blanks:
        return join.join(_alike(line.rstrip() if level.ignores_line_ends else line) for line in lines)
    loose = []
    for number, line in enumerate(lines):
        words = f"{_BLANK}+".join(_alike(word) for word in line.split())
        if words and (number or line[0].isspace()):
            words = f"{_BLANK}*{words}" if number else rf"(?<![^\n]){_BLANK}*{words}"
        loose.append(words)
    # A word at either end of what is wanted does not match a part of a longer one.
    stripped = wanted.strip()
    before = r"(?<!\w)" if stripped[0].isalnum() and wanted[0] == stripped[0] else ""
    after = r"(?!\w)" if stripped[-1].isalnum() and wanted[-1] == stripped[-1] else ""
    return f"{before}{join.join(loose)}{after}"


def _alike(text: str) -> str:
    return "".join(_CLASS_OF.get(char) or re.escape(char) for char in text)


_MAX_SHOWN = 15
_MAX_CHARS = 160
_MAX_COMPARED = 200_000
"""So many lines are compared word by word."""
_WORD = re.compile(r"\w+")


def describe_nearest(wanted: str, text: str) -> str:
    """A paragraph with the most similar lines and the first difference; empty when nothing is similar."""
    wanted_lines = wanted.strip("\n").split("\n")
    lines = text.split("\n")
    start = _start_by_equal_lines(wanted_lines, lines)
    if start is None:
        start = _start_by_words(wanted_lines, lines)
    if start is None:
        return ""
    shown = lines[start : start + min(len(wanted_lines), _MAX_SHOWN)]
    body = "\n".join(f"{number:>6}\t{_cut(line)}" for number, line in enumerate(shown, start + 1))
    return f"The most similar text is:\n{body}{_first_difference(wanted_lines, lines, start)}"


def _start_by_equal_lines(wanted_lines: list[str], lines: list[str]) -> int | None:
    offsets: dict[str, list[int]] = {}
    for number, line in enumerate(wanted_lines):
        if line.strip():
            offsets.setdefault(line.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for at, line in enumerate(lines):
        for number in offsets.get(line.strip(), ()):
            votes[max(0, at - number)] += len(line.strip())
    return min(votes, key=lambda start: (-votes[start], start)) if votes else None


def _start_by_words(wanted_lines: list[str], lines: list[str]) -> int | None:
    number = max(range(len(wanted_lines)), key=lambda at: len(wanted_lines[at].strip()))
    words = set(_WORD.findall(wanted_lines[number].casefold()))
    best, score = None, 0.5
    for at, line in enumerate(lines[:_MAX_COMPARED]):
        here = set(_WORD.findall(line[:2_000].casefold()))
        alike = 2 * len(words & here) / (len(words) + len(here) or 1)
        if alike > score or (best is None and alike == score):
            best, score = at, alike
    return None if best is None else max(0, best - number)


def _first_difference(wanted_lines: list[str], lines: list[str], start: int) -> str:
    for at, line in enumerate(wanted_lines):
        there = lines[start + at] if start + at < len(lines) else None
        if there == line:
            continue
        quoted = ascii if there is not None and normalize("NFKC", there) == normalize("NFKC", line) else repr
        found = "the text ends" if there is None else f"the file has {quoted(_cut(there))}"
        return f"\nThe first difference is in line {start + at + 1}: {found}, old_string has {quoted(_cut(line))}."
    return ""


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"
