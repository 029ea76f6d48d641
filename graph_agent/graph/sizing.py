"""How big the next model request is, and what it may be: in tokens as the model's provider counts them.

What the provider told of the last request is taken where it can be believed; everything since is estimated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.ports.tokens import Known
from graph_agent.ports.window import Window

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Allowance", "Size", "allowance_of", "size_of"]

_BELIEVABLE = 3
"""A told count that is more than so many times off the estimate is taken for an error of the provider."""
_LEAST_TALK = 8
"""However long instructions and tools are: one part in so many of the window is allowed for the conversation."""
_SMALLEST = 512


@dataclass(frozen=True, slots=True)
class Size:
    """A request, weighed."""

    fixed: int
    """Instructions and tools: what no compaction changes. As estimated."""
    messages: tuple[int, ...]
    """Each message of the conversation, in order. As estimated."""
    told: int | None = None
    """The whole of it by the provider's count of the last request, as far as that goes."""

    @property
    def estimated(self) -> int:
        """The whole, as estimated."""
        return self.fixed + sum(self.messages)

    @property
    def total(self) -> int:
        """The whole, as the provider is likely to count it."""
        return self.estimated if self.told is None else self.told

    @property
    def scale(self) -> float:
        """Tokens of the provider for each that is estimated."""
        return self.total / max(self.estimated, 1)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a request may be, in estimated tokens."""

    limit: int
    """Of the whole: above it, the conversation is compacted."""
    goal: int
    """Of the conversation alone: what a compaction leaves."""
    ceiling: int
    """Of the whole: beyond it, there is no room left for a reply."""


def size_of(
    messages: "Sequence[BaseMessage]",
    tools: Sequence[Mapping[str, Any]],
    uncounted: str = "",
    known: Known | None = None,
) -> Size:
    """Weigh a request.

    Args:
        messages: those of the request, the system message first.
        tools: the declarations.
        uncounted: id of the newest message that the provider's counts say nothing of any more, because what was
            before it has been compacted since.
        known: estimates from earlier requests; those of this one are added.
    """
    remembered = known or Known()
    costs = [*map(remembered.message_tokens, messages)]
    leading = next((at for at, message in enumerate(messages) if message.type != "system"), len(messages))
    size = Size(remembered.declarations_tokens(tools) + sum(costs[:leading]), tuple(costs[leading:]))
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].id == uncounted and uncounted:
            return size
        told = (getattr(messages[position], "usage_metadata", None) or {}).get("input_tokens")
        if told:
            total = int(told) + sum(costs[position:])
            is_sound = size.estimated <= total * _BELIEVABLE and total <= size.estimated * _BELIEVABLE
            return Size(size.fixed, size.messages, total if is_sound else None)
    return size


def allowance_of(size: Size, window: Window) -> Allowance:
    """What the request may be in this window."""
    ceiling = int(window.ceiling / size.scale)
    talk = max((ceiling - size.fixed) * window.compact_at // 100, ceiling // _LEAST_TALK, _SMALLEST)
    return Allowance(size.fixed + talk, talk // 2, ceiling)
