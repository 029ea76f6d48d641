"""Slash commands defined by the user in Markdown files, and the front matter of such files.

Front matter is the head of a file between two lines `---`: fields with one text each, which is less than YAML.
"""

import re
import shlex
from dataclasses import dataclass

__all__ = [
    "UserCommand",
    "command_name",
    "expand_user_command",
    "field_items",
    "parse_user_command",
    "split_front_matter",
]

_DESCRIPTION_CHARS = 100
_PLACEHOLDER = re.compile(r"\$(?:ARGUMENTS\b|([1-9])(?!\d))")
_NAME = re.compile(r"[\w.-]+(?::[\w.-]+)*")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_BLOCK_MARK = re.compile(r"[>|][-+]?\d?")
"""In place of a text: the text follows in the indented lines below."""


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
    """The path of its file."""

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"/{self.name} {self.hint}".rstrip()


def command_name(path: str) -> str:
    """The name of a command, from the path of its file in the folder of commands; empty if the path gives none."""
    name = path.removesuffix(".md").replace("/", ":")
    return name if path.endswith(".md") and _NAME.fullmatch(name) else ""


def parse_user_command(name: str, text: str, place: str) -> UserCommand:
    """The command in a file: optional front matter, then the message."""
    fields, body = split_front_matter(text)
    does = fields.get("description") or next((line for line in body.split("\n") if line.strip()), "")
    return UserCommand(name, _one_line(does), _one_line(fields.get("argument-hint", "")), body, place)


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _DESCRIPTION_CHARS else f"{words[: _DESCRIPTION_CHARS - 1]}…"


def expand_user_command(command: UserCommand, arguments: str) -> str:
    """The message with the arguments in place of its placeholders; without placeholders they follow at the end."""
    if not _PLACEHOLDER.search(command.body):
        return f"{command.body}\n\n{arguments}" if arguments else command.body
    try:
        words = shlex.split(arguments)
    except ValueError:  # A quote is not closed.
        words = arguments.split()

    def fill(found: re.Match[str]) -> str:
        if found[1] is None:
            return arguments
        number = int(found[1])
        return words[number - 1] if number <= len(words) else ""

    return _PLACEHOLDER.sub(fill, command.body)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields by name in lower case, and the text below them; anything else in the head is ignored."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    if front is None:
        return {}, text.strip()
    fields: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in [*front[1].split("\n"), "end:"]:
        if line.startswith((" ", "\t", "- ")) or not line.strip():
            lines.append(line.strip())
            continue
        if name:
            fields[name] = _field_text(lines)
        key, colon, value = line.partition(":")
        name, lines = key.strip().lower() if colon and not line.startswith("#") else "", [value.strip()]
    return fields, text[front.end() :].strip()


def field_items(text: str) -> tuple[str, ...]:
    """The items of a field that is a list, written `a, b`, `[a, b]` or one below the other, each after a dash."""
    text = text.strip()
    if text.startswith("- "):
        items = re.split(r"(?:^|\s)-\s+", text)
    else:
        items = text.removeprefix("[").removesuffix("]").split(",")
    return tuple(item for one in items if (item := one.strip().strip("\"'")))


def _field_text(lines: list[str]) -> str:
    first, *more = lines
    below = " ".join(line for line in more if line)
    if _BLOCK_MARK.fullmatch(first):
        return below
    text = f"{first} {below}".strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
