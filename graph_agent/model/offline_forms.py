"""How one wording of an offline command is written down and read. Knows no language and no particular wording."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from graph_agent.model.offline_commands import Command

__all__ = ["NUMBER", "QUOTED", "Form", "folder", "form", "line_number", "lines", "path", "plain"]

QUOTED = (
    r"""(?:```.*?```|"(?:\\.|[^"\\])*"|`[^`]*`|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》"""
    r"""|(?<!\w)‘[^’]*’(?!\w)|(?<!\w)'[^']*'(?!\w))"""
)
"""Text between quotes of one kind; an apostrophe within a word is no quote."""

NUMBER = r"(?:\d{1,9}|[一二两三四五六七八九十]{1,3})"
"""The number of a line, in digits of any width or in Chinese words up to ninety-nine."""

_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_SLOTS = {
    "F": rf"""@?{QUOTED}|(?:\\[ ]|[^\s"'`“”‘’「」『』《》,，;；])+?""",
    "T": rf"{QUOTED}|[^\n]*\S.*",
    "B": rf"{QUOTED}|\S.{{0,1000}}?",
}
_FENCE = re.compile(r"```(?:[\w+-]*\n)?(.*?)\n?```", re.DOTALL)
_HERE = re.compile(
    r"(?:(?:the|this|my|our)\s+)?(?:(?:current|working)\s+)?(?:here|folder|directory|workspace|project|repo(?:sitory)?)"
    r"|(?:当前)?(?:目录|文件夹)|这里",
    re.IGNORECASE,
)
_CHINESE_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | {"两": 2}


class Form(NamedTuple):
    """One wording and what it means."""

    pattern: re.Pattern[str]
    build: Callable[[Mapping[str, str | None]], Command]
    examples: tuple[str, ...]
    """Messages in this wording, for the documentation and the tests."""

    @property
    def takes_the_rest(self) -> bool:
        """Whether it ends in a free text, to which everything up to the end of the message belongs."""
        return self.pattern.pattern.endswith((f"{_SLOTS['T']})", f"{_SLOTS['B']})"))


def form(pattern: str, build: Callable[[Mapping[str, str | None]], Command], *examples: str) -> Form:
    """A wording; in its pattern <F:name> stands for a file, <B:name> for a short text, <T:name> for the rest."""
    spelled = re.sub(r"<([FTB]):(\w+)>", lambda slot: f"(?P<{slot[2]}>{_SLOTS[slot[1]]})", pattern)
    return Form(re.compile(spelled, re.IGNORECASE | re.DOTALL), build, examples)


def plain(text: str | None) -> str:
    """The text without the quotes around it; between double quotes, backslash escapes are read."""
    text = (text or "").strip()
    if len(text) < 2 or not re.fullmatch(QUOTED, text, re.DOTALL):
        return text
    if fenced := _FENCE.fullmatch(text):
        return fenced[1]
    inner = text[1:-1]
    return re.sub(r'\\[nt"\\]', lambda found: _ESCAPES[found[0]], inner) if text[0] == '"' else inner


def path(text: str | None) -> str:
    """The name of a file, without the @ by which the chat completes it.

    Unquoted, it loses the full stop of the sentence and the backslashes before blanks.
    """
    text = (text or "").strip().removeprefix("@")
    name = plain(text)
    if name != text:
        return name
    name = name.rstrip("。！？!?").replace("\\ ", " ")
    return name.rstrip(".") or name


def folder(text: str | None) -> str:
    """The name of a folder; nothing, and words for the place where we are, are the workspace."""
    name = path(text)
    return "." if not name or _HERE.fullmatch(name) else name


def lines(text: str | None) -> str:
    """The text as whole lines: with a line feed at its end, unless it is empty. A first indentation stays."""
    whole = plain(text)
    if whole == (text or "").strip():
        whole = (text or "").rstrip()
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def line_number(text: str | None) -> int | None:
    """The number of a line; None where none was given."""
    if not text:
        return None
    return int(text) if text.isdecimal() else _in_chinese(text)


def _in_chinese(text: str) -> int:
    tens, ten, ones = text.rpartition("十")
    whole = (_CHINESE_DIGITS.get(tens, 1) * 10) if ten else 0
    return whole + _CHINESE_DIGITS.get(ones, 0)
