"""Phrase tables: the notation in which a language writes its commands, and what the slots of a phrase mean.

A table is a text of rows `COMMAND: pattern` with examples below, each after `  - `. The first phrase that fits the
whole message wins. Patterns are regular expressions in which a blank is any white space, `(...)` captures nothing,
`<NAME>` is the row of that name above, `<F:path>` is a slot: F a file, B a short text, T the rest, N a number.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from graph_agent.model.offline.commands import (
    AppendText,
    Command,
    CreateFile,
    FindFiles,
    ListFiles,
    ReadFile,
    Remember,
    ReplaceText,
    RunShell,
    SearchText,
    ShowTodo,
)

__all__ = ["QUOTED", "Phrase", "phrase_table"]

QUOTED = (
    r"""(?:```.*?```|"(?:\\.|[^"\\])*"|`[^`]*`|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》"""
    r"""|(?<!\w)‘[^’]*’(?!\w)|(?<!\w)'[^']*'(?!\w))"""
)
"""Text between quotes of one kind; an apostrophe inside a word is no quote."""

_SLOTS = {
    "F": rf"""@?{QUOTED}|(?:\\[ ]|[^\s"'`“”‘’「」『』《》,，;；])+?""",
    "T": rf"{QUOTED}|[^\n]*\S.*",
    "B": rf"{QUOTED}|\S.{{0,1000}}?",
    # Digits of any width, or Chinese words up to ninety-nine.
    "N": r"\d{1,9}|[一二两三四五六七八九十]{1,3}",
}
_SLOT_NAMES = ("path", "pattern", "text", "old", "new", "first", "last")

Slots = Mapping[str, str]
"""The text of each slot; empty where the message left it out."""


class Phrase(NamedTuple):
    """One way to write a command."""

    pattern: re.Pattern[str]
    build: Callable[[Slots], Command]
    examples: tuple[str, ...]
    """Messages of this form, for the documentation and the tests."""

    def match(self, text: str) -> Command | None:
        """The command that the text means; None where it has another form."""
        found = self.pattern.fullmatch(text)
        return self.build({**dict.fromkeys(_SLOT_NAMES, ""), **found.groupdict("")}) if found else None

    def takes_the_rest_of(self, text: str) -> bool:
        """Whether everything up to the end of the text belongs to the last slot, which has no quotes around it."""
        if not self.pattern.pattern.endswith((f"{_SLOTS['T']})", f"{_SLOTS['B']})")):
            return False
        found = self.pattern.fullmatch(text)
        last = found[found.lastgroup] if found and found.lastgroup else ""
        return re.fullmatch(QUOTED, last.strip(), re.DOTALL) is None


def phrase_table(rows: str) -> tuple[Phrase, ...]:
    """The phrases of a table; rows whose names are in capitals are only parts of others."""
    phrases: list[Phrase] = []
    parts: dict[str, str] = {}
    for row in re.split(r"\n(?=\S)", rows.strip()):
        head, *examples = row.split("\n  - ")
        name, _, notation = head.partition(": ")
        pattern = _regex(re.sub(r"\n\s+", "", notation), parts)
        if name.isupper():
            parts[name] = pattern
        else:
            compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
            phrases.append(Phrase(compiled, _BUILDERS[name], tuple(one.replace("⏎", "\n") for one in examples)))
    return tuple(phrases)


def _regex(notation: str, parts: Mapping[str, str]) -> str:
    pattern = re.sub(r"(?<!\\)\((?!\?)", "(?:", notation).replace(" ", r"\s+")
    pattern = re.sub(r"<([FBTN]):(\w+)>", lambda slot: f"(?P<{slot[2]}>{_SLOTS[slot[1]]})", pattern)
    return re.sub(r"<([A-Z_]+)>", lambda part: parts[part[1]], pattern)


def _build_read(slots: Slots) -> ReadFile:
    """A whole file, one line of it, or the lines between two, in whichever order they are named."""
    first, last = _line_number(slots["first"]), _line_number(slots["last"])
    if first is None or last is None:
        return ReadFile(_path(slots["path"]), first, first)
    return ReadFile(_path(slots["path"]), min(first, last), max(first, last))


_BUILDERS: Mapping[str, Callable[[Slots], Command]] = {
    "todo": lambda _: ShowTodo(),
    "list": lambda slots: ListFiles(_folder(slots["path"])),
    "find": lambda slots: FindFiles(_path(slots["pattern"]), _folder(slots["path"])),
    "search": lambda slots: SearchText(_unquoted(slots["text"]), _folder(slots["path"])),
    "create": lambda slots: CreateFile(_path(slots["path"]), _lines(slots["text"])),
    "append": lambda slots: AppendText(_path(slots["path"]), _lines(slots["text"]).removesuffix("\n")),
    "replace": lambda slots: ReplaceText(
        _path(slots["path"]), _unquoted(slots["old"]), _without_full_stop(slots["new"])
    ),
    "run": lambda slots: RunShell(_without_full_stop(slots["text"])),
    "remember": lambda slots: Remember(_unquoted(slots["text"])),
    "read": _build_read,
    "read from": lambda slots: ReadFile(_path(slots["path"]), _line_number(slots["first"])),
    "read first": lambda slots: ReadFile(_path(slots["path"]), 1, _line_number(slots["last"]) or 1),
}

_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_FENCE = re.compile(r"```(?:[\w+-]*\n)?(.*?)\n?```", re.DOTALL)
_HERE = re.compile(
    r"(?:(?:the|this|my|our)\s+)?(?:(?:current|working)\s+)?(?:here|folder|directory|workspace|project|repo(?:sitory)?)"
    r"|(?:当前)?(?:目录|文件夹)|这里",
    re.IGNORECASE,
)


def _unquoted(text: str) -> str:
    """The text without the quotes around it; between double quotes, backslash escapes are read."""
    text = text.strip()
    if len(text) < 2 or not re.fullmatch(QUOTED, text, re.DOTALL):
        return text
    if fenced := _FENCE.fullmatch(text):
        return fenced[1]
    inner = text[1:-1]
    return re.sub(r'\\[nt"\\]', lambda found: _ESCAPES[found[0]], inner) if text[0] == '"' else inner


def _without_full_stop(text: str) -> str:
    """The text without the full stop of a Chinese sentence, in which no command and no name ends."""
    return _unquoted(text.strip().rstrip("。"))


def _path(text: str) -> str:
    """A file name without the @ of the chat's completion.

    Unquoted, it loses the full stop of the sentence and the backslashes before blanks.
    """
    text = text.strip().removeprefix("@")
    name = _unquoted(text)
    if name != text:
        return name
    name = name.rstrip("。！？!?").replace("\\ ", " ")
    return name.rstrip(".") or name


def _folder(text: str) -> str:
    """A folder name; no text, and words for "here", mean the workspace."""
    name = _path(text)
    return "." if not name or _HERE.fullmatch(name) else name


def _lines(text: str) -> str:
    """The text as whole lines, with a newline at the end unless it is empty; the first indentation stays."""
    whole = _unquoted(text)
    if whole == text.strip():
        whole = text.rstrip()
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def _line_number(text: str) -> int | None:
    if not text:
        return None
    if text.isdecimal():
        return int(text)
    digits = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | {"两": 2}
    tens, ten, ones = text.rpartition("十")
    return (digits.get(tens, 1) * 10 if ten else 0) + digits.get(ones, 0)
