"""How large the next model request is, how large it may be, and which limits were learned from refusals.

Sizes are in tokens as the provider counts them: its count of the last request is used where it is plausible, the
rest is estimated. One refusal may be an error of the provider (a router that asked a smaller model once, a proxy
with its own limit), so a learned limit is raised by each request that is accepted close to it, and by each
compaction it causes, until a second refusal confirms it. A new value from the settings or the endpoint takes
precedence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import EstimateCache

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "Allowance",
    "ContextUse",
    "LearnedWindow",
    "Size",
    "allowance_of",
    "learned_from",
    "request_ceiling",
    "size_of",
]

_PLAUSIBLE = 3
"""A reported count that is more than so many times off the estimate is taken for an error of the provider."""
_MEASURABLE = 1_000
"""The fewest estimated tokens between two counts of the provider from which its factor is measured."""
_MAX_FACTOR = 2.0
"""A measured factor is taken to be at most this, and at least one part in so many."""
_MIN_TALK_SHARE = 8
"""However long instructions and tools are: one part in so many of the window is allowed for the conversation."""
_MIN_TALK = 512
_LARGEST_RESERVE_SHARE = 4
"""At most one part in so many is reserved for the reply, however small the window is."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a request, in tokens."""

    fixed: int
    """Instructions and tools: what no compaction changes. As estimated."""
    messages: tuple[int, ...]
    """Each message of the conversation, in order. As estimated."""
    reported: int | None = None
    """The whole of it by the provider's count of the last request, as far as that goes."""
    factor: float = 1.0
    """Tokens of the provider for each estimated one, as measured before the last compaction."""

    @property
    def estimated(self) -> int:
        """The whole, as estimated."""
        return self.fixed + sum(self.messages)

    @property
    def total(self) -> int:
        """The whole, as the provider is likely to count it."""
        return round(self.estimated * self.factor) if self.reported is None else self.reported

    @property
    def scale(self) -> float:
        """Tokens of the provider for each that is estimated."""
        return self.total / max(self.estimated, 1)

    def with_fixed(self, tokens: int) -> "Size":
        """The same with so many more tokens, estimated, that no compaction changes."""
        reported = None if self.reported is None else self.reported + tokens
        return replace(self, fixed=self.fixed + tokens, reported=reported)


def size_of(
    messages: "Sequence[BaseMessage]",
    tools: Sequence[Mapping[str, Any]],
    uncounted: str = "",
    known: EstimateCache | None = None,
    factor: float = 1.0,
) -> Size:
    """Measure a request.

    Args:
        messages: those of the request, the system message first.
        tools: the declarations.
        uncounted: id of the newest message before which the provider's counts are outdated, because the messages
            before it have been compacted since.
        known: estimates from earlier requests; those of this one are added.
        factor: what the provider counted for each estimated token before the last compaction.
    """
    cache = known or EstimateCache()
    costs = [*map(cache.message_tokens, messages)]
    leading = next((at for at, message in enumerate(messages) if message.type != "system"), len(messages))
    fixed = cache.declarations_tokens(tools) + sum(costs[:leading])
    size = Size(fixed, tuple(costs[leading:]), factor=factor)
    counts = _reported_counts(messages, uncounted)
    if not counts:
        return size
    at, reported = counts[0]
    counted = size.estimated - sum(costs[at:])
    if not counted / _PLAUSIBLE <= reported <= counted * _PLAUSIBLE:
        return size
    return replace(size, reported=reported + round(sum(costs[at:]) * _measured_factor(counts, costs)))


def _reported_counts(messages: "Sequence[BaseMessage]", uncounted: str) -> list[tuple[int, int]]:
    """What the provider counted before the message at each position, newest first."""
    counts: list[tuple[int, int]] = []
    for position in range(len(messages) - 1, -1, -1):
        if uncounted and messages[position].id == uncounted:
            break
        if reported := (getattr(messages[position], "usage_metadata", None) or {}).get("input_tokens"):
            counts.append((position, int(reported)))
    return counts


def _measured_factor(counts: Sequence[tuple[int, int]], costs: Sequence[int]) -> float:
    """Tokens of the provider for each that is estimated, in the messages between its newest and an older count."""
    (newest, total), (oldest, before) = counts[0], counts[-1]
    estimated = sum(costs[oldest:newest])
    if estimated < _MEASURABLE:
        return 1.0
    return min(max((total - before) / estimated, 1 / _MAX_FACTOR), _MAX_FACTOR)


@dataclass(frozen=True, slots=True)
class ContextUse:
    """What the next model request holds, in tokens as the provider is likely to count them."""

    instructions: int
    tools: Mapping[str, int]
    """The declarations, by tool."""
    summary: int
    """What stands for messages that were summarized."""
    messages: int
    """The user's messages, with the files that they name."""
    replies: int
    results: Mapping[str, int]
    """Of calls, by tool."""
    window: ContextWindow
    compacted_above: int
    """A larger request has its conversation compacted first."""
    is_estimated: bool
    """No part of the sum was counted by the provider."""

    @property
    def total(self) -> int:
        """The whole request."""
        parts = (self.instructions, self.summary, self.messages, self.replies)
        return sum(parts) + sum(self.tools.values()) + sum(self.results.values())


@dataclass(frozen=True, slots=True)
class Allowance:
    """How large a request may be, in estimated tokens."""

    limit: int
    """Of the whole: above it, the conversation is compacted."""
    goal: int
    """Of the conversation alone: what a compaction leaves."""
    ceiling: int
    """Of the whole: beyond it, there is no room left for a reply."""


def request_ceiling(window: ContextWindow) -> int:
    """Tokens that a request may have in this window, which leaves room for the reply."""
    return window.tokens - min(window.reserve, window.tokens // _LARGEST_RESERVE_SHARE)


def allowance_of(size: Size, window: ContextWindow) -> Allowance:
    """How large the request may be in this context window."""
    ceiling = int(request_ceiling(window) / size.scale)
    talk = max((ceiling - size.fixed) * window.compact_at // 100, ceiling // _MIN_TALK_SHARE, _MIN_TALK)
    return Allowance(size.fixed + talk, talk // 2, ceiling)


_SAME_SIZE = 1.5
"""Two refusals mean the same limit where neither size is more than so many times the other."""
_CLOSE = 0.5
_RAISE = 1.25


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """A model's context window as learned from its refusals. The state holds it as a mapping of these fields."""

    model: str
    tokens: int
    refused_tokens: int = 0
    """How big the request was whose refusal this was learned from."""
    is_confirmed: bool = True
    """Nothing raises it any more."""
    stated_limit: int = 0
    """The limit that the refusal named; 0: none."""
    configured_tokens: int = 0
    """The window by settings or endpoint when this was learned; 0: neither had one."""

    def after_refusal(
        self, refused: int, tokens: int, window: ContextWindow, stated: int | None = None
    ) -> "LearnedWindow":
        """The estimate after another refusal, which may have stated a limit; `window` is the configured one."""
        is_same_size = max(refused, self.refused_tokens) <= _SAME_SIZE * min(refused, self.refused_tokens)
        is_same_limit = stated is not None and stated == self.stated_limit
        is_confirmed = is_same_size or is_same_limit
        return LearnedWindow(self.model, tokens, refused, is_confirmed, stated or 0, _configured_tokens(window))

    def after_reply(self, taken: int) -> "LearnedWindow":
        """The estimate after a request of this size was accepted."""
        return self.raised() if taken >= _CLOSE * self.tokens else self

    def raised(self) -> "LearnedWindow":
        """The estimate after a compaction that it caused, which may have been unnecessary."""
        return self if self.is_confirmed else replace(self, tokens=int(self.tokens * _RAISE))

    def within(self, window: ContextWindow) -> ContextWindow:
        """The window to use, given the configured one; an unconfirmed limit makes no request hopeless."""
        is_outdated = _configured_tokens(window) not in (0, self.configured_tokens)
        if self.tokens >= window.tokens or is_outdated:
            return window
        # What was refused is more than any stated limit; the room for a reply was taken off there.
        source = window.source if self.is_confirmed else "assumed"
        return replace(window, tokens=self.tokens, reserve=0, source=source)

    def as_state(self) -> dict[str, Any]:
        """The value of `learned_limits` in the channel `context`."""
        return asdict(self)


def learned_from(context: Mapping[str, Any], model: str) -> LearnedWindow | None:
    """What was learned about this model; None if nothing was."""
    learned = context.get("learned_limits") or {}
    if learned.get("model") != model:
        return None
    return LearnedWindow(
        **{item.name: learned[item.name] for item in fields(LearnedWindow) if item.name in learned}
    )


def _configured_tokens(window: ContextWindow) -> int:
    """The tokens by settings or endpoint; 0 where they come from the table or are assumed."""
    return window.tokens if window.source in ("set", "endpoint") else 0
