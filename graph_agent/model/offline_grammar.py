"""Turns a message into offline commands, or says which part is not understood. Pure."""

import re
from dataclasses import dataclass

from graph_agent.model.offline_chinese import CHINESE, CHINESE_VERBS
from graph_agent.model.offline_commands import Command
from graph_agent.model.offline_english import ENGLISH, ENGLISH_VERBS
from graph_agent.model.offline_forms import QUOTED

__all__ = ["MAX_LENGTH", "NotUnderstood", "is_chinese", "parse"]

MAX_LENGTH = 8_000
"""Longest message that is read as commands, in characters."""

_JOIN = re.compile(
    rf"{QUOTED}|(?:\b(?:and\s)?then\b|然后|接着)[\s,，:：]*(?=(?P<verb>{ENGLISH_VERBS}|{CHINESE_VERBS}))?",
    re.IGNORECASE | re.DOTALL,
)
_POLITE = re.compile(
    r"\A(?:(?:please|(?:can|could|would) you(?: please)?|now)\b[\s,]*)?(?:请帮我|请你|请|帮我|麻烦你|麻烦)?\s*",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The message is not in the command language; nothing of it is done."""

    part: str
    """What could not be read; empty when the message is empty."""
    is_too_long: bool = False


def parse(text: str) -> tuple[Command, ...] | NotUnderstood:
    """All commands of a message, in order; one part that is not understood spoils the whole."""
    if len(text) > MAX_LENGTH:
        return NotUnderstood(text[:80], is_too_long=True)
    commands: list[Command] = []
    for part in _parts(text):
        command = _command(part)
        if command is None:
            return NotUnderstood(part)
        commands.append(command)
    return tuple(commands)


def is_chinese(text: str) -> bool:
    """Whether the answer should be Chinese."""
    return bool(_CHINESE.search(text))


def _parts(text: str) -> list[str]:
    parts, begin = [], 0
    for found in _JOIN.finditer(text):
        if found["verb"] is not None:
            parts.append(text[begin : found.start()].rstrip(" \t\n,;，；。").lstrip())
            begin = found.end()
    return [*parts, text[begin:].strip()]


def _command(part: str) -> Command | None:
    bare = _POLITE.sub("", part)
    for wording in (*ENGLISH, *CHINESE):
        if found := wording.pattern.fullmatch(bare):
            return wording.build({**dict.fromkeys(("path", "text", "first", "last")), **found.groupdict()})
    return None
