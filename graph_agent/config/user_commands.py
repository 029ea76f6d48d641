"""A slash command of the user's own, as a Markdown file holds it: what it says of itself, and the message it makes.

Knows texts alone: who read the file, and whether it counts, is decided elsewhere.

The head of a Markdown file, between two lines `---`: fields with a text each. Knows no YAML beyond that.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["UserCommand", "command_name", "expand_user_command", "parse_user_command", "split_front_matter"]

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FOLDED = re.compile(r"[>|][-+]?\d?")
"""In place of a text: it stands in the indented lines below."""


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields by name in small letters, and what stands below the head.

    Whatever else other programs may read in the head is passed over.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front = _FRONT.match(text)
    return (dict(_fields(front[1])), text[front.end() :].strip()) if front else ({}, text.strip())


def _fields(front: str) -> Iterator[tuple[str, str]]:
    name, lines = "", list[str]()
    for line in [*front.split("\n"), "end:"]:
        if line.startswith((" ", "\t")) or not line.strip():
            lines.append(line.strip())
            continue
        if name:
            yield name, _joined(lines)
        key, colon, value = line.partition(":")
        name, lines = key.strip().lower() if colon and not line.startswith("#") else "", [value.strip()]


def _joined(lines: list[str]) -> str:
    first, *more = lines
    below = " ".join(line for line in more if line)
    return below if _FOLDED.fullmatch(first) else _unquoted(f"{first} {below}".strip())


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


_DESCRIPTION_CHARS = 100
_PLACE = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?!\d))")
_NAME = re.compile(r"[\w.-]+(?::[\w.-]+)*")


@dataclass(frozen=True, slots=True)
class UserCommand:
    """One command."""

    name: str
    """Without the slash; folders are joined to it by colons."""
    does: str
    """One line for lists."""
    hint: str
    """What may follow it, as its author names that; empty for nothing in particular."""
    body: str
    place: str
    """The file it stands in."""

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"/{self.name} {self.hint}".rstrip()


def command_name(path: str) -> str:
    """The name that a file gives its command, by its path in the folder of commands; empty where that is none."""
    name = path.removesuffix(".md").replace("/", ":")
    return name if path.endswith(".md") and _NAME.fullmatch(name) else ""


def parse_user_command(name: str, text: str, place: str) -> UserCommand:
    """The command that a file holds: an optional head between lines `---`, then the message."""
    said, body = split_front_matter(text)
    does = said.get("description") or next((line for line in body.split("\n") if line.strip()), "")
    return UserCommand(name, _one_line(does), _one_line(said.get("argument-hint", "")), body, place)


def expand_user_command(command: UserCommand, arguments: str) -> str:
    """The message, with the arguments in their places; without any place for them they follow at the end."""
    if not _PLACE.search(command.body):
        return f"{command.body}\n\n{arguments}" if arguments else command.body
    words = _words(arguments)

    def fill(found: re.Match[str]) -> str:
        if found[1] is None:
            return arguments
        number = int(found[1])
        return words[number - 1] if number <= len(words) else ""

    return _PLACE.sub(fill, command.body)


def _words(arguments: str) -> list[str]:
    """As a shell would tell them apart; where quotes do not close, by blanks."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _DESCRIPTION_CHARS else f"{words[: _DESCRIPTION_CHARS - 1]}…"
