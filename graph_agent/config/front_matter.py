"""The head of a Markdown file, between two lines `---`: fields with a text each. Knows no YAML beyond that."""

import re
from collections.abc import Iterator

__all__ = ["parted"]

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FOLDED = re.compile(r"[>|][-+]?\d?")
"""In place of a text: it stands in the indented lines below."""


def parted(text: str) -> tuple[dict[str, str], str]:
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
