"""Tells thinking that a model writes between <think> tags from the reply itself. Knows no transport."""

from typing import Literal, NamedTuple

__all__ = ["Piece", "ThinkingFilter"]

_OPEN, _CLOSE = "<think>", "</think>"


class Piece(NamedTuple):
    """Text of one kind."""

    kind: Literal["text", "reasoning"]
    text: str


class ThinkingFilter:
    """Takes a reply piece by piece; only a tag at the very beginning opens thinking."""

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "after", "text"] = "beginning"
        self._held = ""

    def feed(self, text: str) -> list[Piece]:
        """What is certain now; what may be the beginning of a tag is held back."""
        pieces: list[Piece] = []
        self._held += text
        if self._state == "beginning":
            self._begin()
        if self._state == "thinking":
            pieces += self._think()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
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
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._state, self._held = "thinking", start[len(_OPEN) :]
        elif not _OPEN.startswith(start):
            self._state = "text"

    def _think(self) -> list[Piece]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "after", rest
        else:
            keep = next((size for size in range(len(_CLOSE) - 1, 0, -1) if thought.endswith(_CLOSE[:size])), 0)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        return [Piece("reasoning", thought)] if thought else []
