"""Tells thinking that a model writes between <think> tags from the reply itself. Knows no transport."""

import re
from typing import Literal, NamedTuple

__all__ = ["Piece", "ThinkingFilter", "without_thinking"]

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
_LONE_END = re.compile(r"(?:^|\n)</think>[ \t]*(?:\n|$)")


def without_thinking(text: str) -> str:
    """What follows the end of thinking, where its beginning stood in the prompt and was never sent."""
    if "<think>" in text or len(_LONE_END.findall(text)) != 1:
        return text
    return _LONE_END.split(text)[1].lstrip()


class Piece(NamedTuple):
    """Text of one kind."""

    kind: Literal["text", "reasoning"]
    text: str


class ThinkingFilter:
    """Takes a reply piece by piece; only tags at the very beginning open thinking."""

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "text"] = "beginning"
        self._held = ""
        self._close = ""
        """What ends the newest block of thinking; empty before the first."""

    def feed(self, text: str) -> list[Piece]:
        """What is certain now; what may be the beginning of a tag is held back."""
        pieces: list[Piece] = []
        self._held += text
        self._begin()
        while self._state == "thinking" and self._think(pieces):
            self._begin()
        if self._state == "text" and self._held:
            pieces.append(Piece("text", self._held))
            self._held = ""
        return pieces

    def flush(self) -> list[Piece]:
        """What was held back when the reply ended."""
        rest, self._held = self._held, ""
        kind: Literal["text", "reasoning"] = "reasoning" if self._state == "thinking" else "text"
        return [Piece(kind, rest)] if rest else []

    def _begin(self) -> None:
        if self._state != "beginning":
            return
        start = self._held.lstrip()
        if self._close:
            self._held = start
        opened = next((tag for tag in _TAGS if start.startswith(tag)), None)
        if opened:
            self._state, self._held, self._close = "thinking", start[len(opened) :], _TAGS[opened]
        elif not any(tag.startswith(start) for tag in _TAGS):
            self._state = "text"

    def _think(self, pieces: list[Piece]) -> bool:
        """Whether the block has come to its end."""
        close = self._close
        thought, tag, rest = self._held.partition(close)
        if tag:
            self._state, self._held = "beginning", rest
        else:
            keep = next((size for size in range(len(close) - 1, 0, -1) if thought.endswith(close[:size])), 0)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            pieces.append(Piece("reasoning", thought))
        return bool(tag)
