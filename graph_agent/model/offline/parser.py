"""Turns a message into offline commands, or says which part is not understood."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from graph_agent.model.offline.chinese import CHINESE, CHINESE_VERBS
from graph_agent.model.offline.commands import Command
from graph_agent.model.offline.english import ENGLISH, ENGLISH_VERBS
from graph_agent.model.offline.phrases import QUOTED, Phrase

__all__ = ["MAX_LENGTH", "NotUnderstood", "is_chinese", "parse", "parse_command", "strip_politeness"]

MAX_LENGTH = 8_000
"""Longest message that is read as commands, in characters."""

_JOIN = re.compile(
    rf"{QUOTED}|(?:\b(?:and\s+)?(?:then|after\s+that|afterwards|finally)\b|然后|接着|随后|最后|[,，;；。]\s*再)"
    rf"[\s,，:：]*(?=(?P<verb>{ENGLISH_VERBS}|{CHINESE_VERBS}))?",
    re.IGNORECASE | re.DOTALL,
)
_POLITE = re.compile(
    r"(?:(?:please|kindly|ok|okay|now|first|also)\b[\s,，]*)*"
    r"(?:(?:(?:can|could|would|will)\s+you|i\s+want\s+you\s+to|i(?:'d|\s+would)\s+like\s+you\s+to)\b[\s,]*)?"
    r"(?:please\b[\s,]*)?(?:请你|请您|请|帮我|帮忙|麻烦你|麻烦您|麻烦|先|再|能不能|能否|给我)*\s*",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:[\s,，]+(?:please|thanks|thank\s+you|for\s+me)|[\s,，。]*(?:谢谢您?你?|多谢|好吗|可以吗|吧))[\s.!?。！？]*\Z",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"(?:help|commands|\?|？|what\s+can\s+(?:you|i)\s+do|how\s+does\s+this\s+work"
    r"|hi|hello|hey(?:\s+there)?|(?:how\s+(?:do|can)\s+i\s+)?connect\s+(?:to\s+)?(?:a|my|another|the)\s+model"
    r"|你好|您好|嗨|(?:如何|怎么|怎样)?连接(?:一个)?模型|帮助|命令|有哪些命令|你?能做什么|怎么用)[\s.!?。！？]*",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The message is not in the command language; none of it is run."""

    part: str
    """What could not be read; empty when the message is empty."""
    is_too_long: bool = False
    asks_for_help: bool = False


def parse(text: str) -> tuple[Command, ...] | NotUnderstood:
    """All commands of a message, in order; one part that is not understood rejects the whole message."""
    if len(text) > MAX_LENGTH:
        return NotUnderstood(text[:80], is_too_long=True)
    if _HELP.fullmatch(text.strip()):
        return NotUnderstood(text.strip(), asks_for_help=True)
    commands: list[Command] = []
    for part in _split(text):
        command = parse_command(part)
        if command is None:
            return NotUnderstood(part)
        commands.append(command)
    return tuple(commands)


def parse_command(part: str) -> Command | None:
    """The single command that this text means; None where it means none."""
    return _match(part, (*ENGLISH, *CHINESE))


def is_chinese(text: str) -> bool:
    """Whether to answer in Chinese; a Chinese file name in an English command is not enough."""
    if not _CHINESE.search(text):
        return False
    return len(text) > MAX_LENGTH or _match(_split(text)[0], ENGLISH) is None


def strip_politeness(part: str) -> str:
    """The text without words such as "please" and "can you" before it."""
    polite = _POLITE.match(part)
    return part[polite.end() :] if polite else part


def _split(text: str) -> list[str]:
    """The parts of a message between the words that join commands."""
    parts, begin = [], 0
    for found in _JOIN.finditer(text):
        if found["verb"] is not None:
            parts.append(text[begin : found.start()].rstrip(" \t\n,;，；").lstrip())
            begin = found.end()
    return [*parts, text[begin:].strip()]


def _match(part: str, phrases: tuple[Phrase, ...]) -> Command | None:
    commands = (phrase.match(text) for text, phrase in _candidates(strip_politeness(part), phrases))
    return next((command for command in commands if command is not None), None)


def _candidates(text: str, phrases: tuple[Phrase, ...]) -> Iterator[tuple[str, Phrase]]:
    """Thanks at the end belong to an unquoted text that takes the rest of the message, and to nothing else."""
    without_thanks = _THANKS.sub("", text)
    if without_thanks == text:
        yield from ((text, phrase) for phrase in phrases)
        return
    for phrase in phrases:
        yield text if phrase.takes_the_rest_of(without_thanks) else without_thanks, phrase
    yield from ((text, phrase) for phrase in phrases)
