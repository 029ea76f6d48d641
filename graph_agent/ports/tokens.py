"""How many tokens a text is about to cost: counted by kinds of characters, with no tokenizer and no download.

It knows no model's vocabulary. Measured against the tables of `cl100k_base` and `o200k_base` over source code,
listings, English, JSON and numbers, an estimate is 0.8 to 1.45 times the count of a file (texts with long rules of
dashes up to 1.9), for encoded bytes 0.8 to 1.25. Chinese, Japanese and Korean come to about one token a character:
the count of the older table, 1.5 times that of the newer. The older needs more than estimated for Arabic (0.6)
and Hindi (0.8); the newer less, down to half for Cyrillic.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = [
    "Known",
    "estimate_declaration_tokens",
    "estimate_message_tokens",
    "estimate_request_tokens",
    "estimate_tokens",
    "known_message_tokens",
]

Known = dict[tuple[str, int], int]
"""Estimates by id and length: a message is weighed once, however often it is sent."""
_MOST_KNOWN: Final = 4_000

_WEIGHTS: Final = (
    (bytes(range(0x61, 0x7B)), 0.21),  # small letters
    (bytes(range(0x41, 0x5B)), 0.5),  # capitals stand in names and in encoded bytes
    (b"0123456789", 0.7),
    (b" ", 0.1),
    (b"\t\n\r", 0.4),
    (bytes(range(0xC2, 0xE0)), 0.5),  # begins two bytes of UTF-8: accents, Cyrillic, Greek, Arabic
    (bytes(range(0xE0, 0xF0)), 1.0),  # three: Chinese, Japanese, Korean, Indian scripts
    (bytes(range(0xF0, 0xF5)), 2.5),  # four: emoji
)
_CONTINUATION: Final = bytes(range(0x80, 0xC2))
_MARK: Final = 0.58
"""Of every other character: punctuation."""
_LONG_RUN: Final = 0.5
"""More of each letter beyond twelve for each blank, line end or mark: bytes in base64 hold no words."""
_PER_MESSAGE: Final = 4
_PER_BLOCK: Final = 1_000
"""Of a part of a message that is not text, such as an image."""


def estimate_tokens(text: str) -> int:
    """About how many tokens the text is; at least 1 unless it is empty. Takes about a millisecond a megabyte."""
    rest = text.encode("utf-8", "replace").translate(None, _CONTINUATION)
    total = 0.0
    counts = []
    for kind, weight in _WEIGHTS:
        fewer = rest.translate(None, kind)
        counts.append(len(rest) - len(fewer))
        total += weight * counts[-1]
        rest = fewer
    small, capital, _, blank, line_end, *_ = counts
    breaks = blank + line_end + len(rest)
    total += _MARK * len(rest) + _LONG_RUN * max(0, small + capital - 12 * (breaks + 1))
    return max(round(total), 1) if text else 0


def estimate_message_tokens(message: "BaseMessage") -> int:
    """About how many tokens one message is in a request, its calls and its frame included."""
    total = _PER_MESSAGE + sum(map(_block_tokens, _blocks(message.content)))
    for call in getattr(message, "tool_calls", ()):
        arguments = json.dumps(call["args"], ensure_ascii=False)
        total += _PER_MESSAGE + estimate_tokens(call["name"]) + estimate_tokens(arguments)
    return total


def known_message_tokens(message: "BaseMessage", known: Known) -> int:
    """The same, weighed at the first request that it is part of; `known` takes it for the next ones."""
    if message.id is None or not isinstance(message.content, str):
        return estimate_message_tokens(message)
    key = (message.id, len(message.content))
    if key not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[key] = estimate_message_tokens(message)
    return known[key]


def estimate_declaration_tokens(declaration: Mapping[str, Any]) -> int:
    """About how many tokens one function declaration is."""
    return estimate_tokens(json.dumps(declaration, ensure_ascii=False, default=str))


def estimate_request_tokens(
    messages: "Iterable[BaseMessage]", tools: Iterable[Mapping[str, Any]] = (), known: Known | None = None
) -> int:
    """About how many tokens a whole request is; messages that are `known` are not weighed again."""
    remembered: Known = {} if known is None else known
    talk = sum(known_message_tokens(message, remembered) for message in messages)
    return talk + sum(map(estimate_declaration_tokens, tools))


def _blocks(content: "str | Sequence[str | Mapping[str, Any]]") -> "Sequence[str | Mapping[str, Any]]":
    return [content] if isinstance(content, str) else content


def _block_tokens(block: str | Mapping[str, Any]) -> int:
    if isinstance(block, str):
        return estimate_tokens(block)
    text = block.get("text")
    return estimate_tokens(text) if isinstance(text, str) else _PER_BLOCK
