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
]

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


def estimate_declaration_tokens(declaration: Mapping[str, Any]) -> int:
    """About how many tokens one function declaration is."""
    return estimate_tokens(json.dumps(declaration, ensure_ascii=False, default=str))


class Known:
    """Estimates from earlier requests: what is part of many requests is weighed once."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int], int] = {}
        """By id and length: a message may be shortened under its id."""
        self._declarations: dict[int, tuple[Mapping[str, Any], int]] = {}
        """By identity of the declaration, which is held so that no other one can get it."""

    def message_tokens(self, message: "BaseMessage") -> int:
        """What `estimate_message_tokens` says of it."""
        if message.id is None or not isinstance(message.content, str):
            return estimate_message_tokens(message)
        key = (message.id, len(message.content))
        tokens = self._messages.get(key)
        if tokens is None:
            if len(self._messages) >= _MOST_KNOWN:
                self._messages.clear()
            tokens = self._messages[key] = estimate_message_tokens(message)
        return tokens

    def declarations_tokens(self, declarations: Iterable[Mapping[str, Any]]) -> int:
        """What `estimate_declaration_tokens` says of all of them."""
        return sum(map(self._declaration_tokens, declarations))

    def _declaration_tokens(self, declaration: Mapping[str, Any]) -> int:
        known = self._declarations.get(id(declaration))
        if known is None:
            if len(self._declarations) >= _MOST_KNOWN:
                self._declarations.clear()
            known = self._declarations[id(declaration)] = (declaration, estimate_declaration_tokens(declaration))
        return known[1]


def estimate_request_tokens(
    messages: "Iterable[BaseMessage]", tools: Iterable[Mapping[str, Any]] = (), known: Known | None = None
) -> int:
    """About how many tokens a whole request is; what is `known` is not weighed again."""
    remembered = known or Known()
    return sum(map(remembered.message_tokens, messages)) + remembered.declarations_tokens(tools)


def _blocks(content: "str | Sequence[str | Mapping[str, Any]]") -> "Sequence[str | Mapping[str, Any]]":
    return [content] if isinstance(content, str) else content


def _block_tokens(block: str | Mapping[str, Any]) -> int:
    if isinstance(block, str):
        return estimate_tokens(block)
    text = block.get("text")
    return estimate_tokens(text) if isinstance(text, str) else _PER_BLOCK
