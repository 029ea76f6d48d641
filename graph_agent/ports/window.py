"""How much a model takes in, and how much of it a request may use. Values only; asks nobody."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["ASSUMED_TOKENS", "Window", "WindowOf", "assumed_window"]

ASSUMED_TOKENS = 128_000
"""The window of a model that nobody knows anything about."""
_LARGEST_SHARE = 4
"""At most one part in so many is kept for the reply, however small the window is."""


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of one model."""

    tokens: int = ASSUMED_TOKENS
    source: Literal["set", "endpoint", "table", "assumed"] = "assumed"
    """Who says so: the settings, the endpoint's list of models, the table of known ones, nobody."""
    reserve: int = 8_192
    """Tokens kept free for the reply."""
    compact_at: int = 80
    """Percent of what is left for the conversation; above it the conversation is compacted."""
    summarises: bool = True
    """Whether there is a language model to write a summary."""

    @property
    def ceiling(self) -> int:
        """Tokens that a request may have."""
        return self.tokens - min(self.reserve, self.tokens // _LARGEST_SHARE)


WindowOf = Callable[[int], Awaitable[Window]]
"""The window of the present model, told how many tokens the next request is about to have: as long as that is few,
nobody need be asked."""


async def assumed_window(tokens: int) -> Window:  # noqa: ARG001 - the same whatever the request
    """The window where none is told."""
    return Window()
