"""Turns a message into offline commands, or says which part is not understood. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from graph_agent.model.offline_chinese import CHINESE, CHINESE_VERBS
from graph_agent.model.offline_commands import Command
from graph_agent.model.offline_english import ENGLISH, ENGLISH_VERBS
from graph_agent.model.offline_forms import QUOTED, Form

__all__ = ["MAX_LENGTH", "NotUnderstood", "bare", "is_chinese", "parse", "parse_one"]

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
    """The message is not in the command language; nothing of it is done."""

    part: str
    """What could not be read; empty when the message is empty."""
    is_too_long: bool = False
    asks_for_help: bool = False
    """Whether the message is a wish to be told what there is."""


def parse(text: str) -> tuple[Command, ...] | NotUnderstood:
    """All commands of a message, in order; one part that is not understood spoils the whole."""
    if len(text) > MAX_LENGTH:
        return NotUnderstood(text[:80], is_too_long=True)
    if _HELP.fullmatch(text.strip()):
        return NotUnderstood(text.strip(), asks_for_help=True)
    commands: list[Command] = []
    for part in _parts(text):
        command = parse_one(part)
        if command is None:
            return NotUnderstood(part)
        commands.append(command)
    return tuple(commands)


def parse_one(part: str) -> Command | None:
    """The single command that this text is; None where it is none."""
    return _reading(part, (*ENGLISH, *CHINESE))


def bare(part: str) -> str:
    """The text without the politeness before it."""
    polite = _POLITE.match(part)
    return part[polite.end() :] if polite else part


def is_chinese(text: str) -> bool:
    """Whether the answer should be Chinese: a Chinese file name in an English command does not make it so."""
    if not _CHINESE.search(text):
        return False
    return len(text) > MAX_LENGTH or _reading(_parts(text)[0], ENGLISH) is None


def _parts(text: str) -> list[str]:
    parts, begin = [], 0
    for found in _JOIN.finditer(text):
        if found["verb"] is not None:
            parts.append(text[begin : found.start()].rstrip(" \t\n,;，；").lstrip())
            begin = found.end()
    return [*parts, text[begin:].strip()]


def _reading(part: str, wordings: tuple[Form, ...]) -> Command | None:
    for text, wording in _candidates(bare(part), wordings):
        if found := wording.pattern.fullmatch(text):
            return wording.build({**dict.fromkeys(("path", "text", "first", "last")), **found.groupdict()})
    return None


def _candidates(wish: str, wordings: tuple[Form, ...]) -> Iterator[tuple[str, Form]]:
    """Thanks at the end belong to a bare text that takes the rest, and to no other command."""
    thankless = _THANKS.sub("", wish)
    for wording in wordings:
        keeps = wording.takes_the_rest and thankless != wish and not _ends_quoted(wording, thankless)
        yield wish if keeps else thankless, wording
    if thankless != wish:
        for wording in wordings:
            yield wish, wording


def _ends_quoted(wording: Form, text: str) -> bool:
    """Whether the text that takes the rest stands between quotes, so that it is clear where it ends."""
    found = wording.pattern.fullmatch(text)
    last = found[found.lastgroup] if found and found.lastgroup else ""
    return re.fullmatch(QUOTED, last.strip(), re.DOTALL) is not None
