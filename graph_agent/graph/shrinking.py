"""Which messages a compaction shortens and which it sums up. Decides by sizes; writes nothing and asks nobody.

Old bulky results go first, for what they held can be read again. What is still too long is summed up from the
oldest on. Calls and their answers stay together, the request of the turn under way stays as the user wrote it, and
the newest step stays whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graph_agent.calls import REPLACES, SHORTENED

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

__all__ = ["Shrinking", "is_summary", "shrinking_of"]

_BULKY = 300
"""Tokens of a result that is worth shortening."""
_STUB = 80
"""Tokens of what stands in its place."""
_MANY = 200
"""Messages that are handled with each step, whatever their size: beyond it the older ones are summed up too."""
_WORTH = 12
"""A compaction that saves less than one part in so many is none."""


@dataclass(frozen=True, slots=True)
class Shrinking:
    """What a compaction is to do."""

    shortened: tuple["AnyMessage", ...] = ()
    """Results that are replaced by a reference to themselves."""
    replaced: tuple["AnyMessage", ...] = ()
    """Messages that a summary takes the place of, in order; empty where none is needed."""
    summary_tokens: int = 0
    """What the summary may take."""
    left: int = 0
    """Tokens of the conversation afterwards, about."""


def shrinking_of(
    messages: "Sequence[AnyMessage]", costs: Sequence[int], goal: int, *, is_deep: bool = False
) -> Shrinking | None:
    """What brings a conversation down to the goal, or near it; None where nothing does that is worth it.

    Args:
        messages: the conversation, without the system message at its head.
        costs: tokens of each.
        goal: tokens it should come down to.
        is_deep: shorten the results of the newest step too: nothing else helped.
    """
    total = sum(costs)
    kept_from = _kept_from(messages, costs, goal // 2)
    shortened: list[int] = []
    left = total
    for at, message in enumerate(messages):
        if left > goal and _is_bulky(message, costs[at]) and (at < kept_from or is_deep):
            shortened.append(at)
            left -= costs[at] - _STUB
    replaced: list[int] = []
    summary = 0
    if left > goal or len(messages) > _MANY:
        asked = _request_under_way(messages)
        replaced = [at for at in range(kept_from) if at != asked]
        weight = sum(costs[at] for at in replaced)
        summary = min(max(goal // 4, _STUB), weight // 3)
        shortened = [at for at in shortened if at not in replaced]
        left = total - weight + summary - sum(costs[at] - _STUB for at in shortened)
    if total - left < max(total // _WORTH, _STUB):
        return None
    return Shrinking(tuple(messages[at] for at in shortened), tuple(messages[at] for at in replaced), summary, left)


def is_summary(message: "AnyMessage") -> bool:
    """Whether it stands for messages that were summed up."""
    return REPLACES in message.response_metadata


def _is_bulky(message: "AnyMessage", cost: int) -> bool:
    return message.type == "tool" and cost > _BULKY and not message.response_metadata.get(SHORTENED)


def _kept_from(messages: "Sequence[AnyMessage]", costs: Sequence[int], room: int) -> int:
    """Where the newest steps begin that fit the room; the newest one is kept whether it fits or not."""
    kept, weight = len(messages), 0
    for at in range(len(messages) - 1, -1, -1):
        weight += costs[at]
        if messages[at].type not in ("human", "ai"):
            continue
        if kept < len(messages) and (weight > room or len(messages) - at > _MANY // 2):
            return kept
        kept = at
    return kept


def _request_under_way(messages: "Sequence[AnyMessage]") -> int | None:
    """The newest message of the user."""
    found = (at for at in range(len(messages) - 1, -1, -1) if messages[at].type == "human")
    return next((at for at in found if not is_summary(messages[at])), None)
