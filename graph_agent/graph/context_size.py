"""How large the next model request is, how large it may be, and which limits a model's refusals have taught.

Sizes are in tokens as the provider counts them: its count of the last request is used where it is plausible, the
rest is estimated. One refusal may be an error of the provider (a router that asked a smaller model once, a proxy
with its own limit), so a learned limit is raised by each request that is accepted close to it, and by each
compaction it causes, until a second refusal confirms it. A new value from the settings or the endpoint takes
precedence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import EstimateCache

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = ["Allowance", "LearnedWindow", "Size", "allowance_of", "learned_from", "size_of"]

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
    known: EstimateCache | None = None,
) -> Size:
    """Weigh a request.

    Args:
        messages: those of the request, the system message first.
        tools: the declarations.
        uncounted: id of the newest message that the provider's counts say nothing of any more, because what was
            before it has been compacted since.
        known: estimates from earlier requests; those of this one are added.
    """
    remembered = known or EstimateCache()
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


def allowance_of(size: Size, window: ContextWindow) -> Allowance:
    """What the request may be in this window."""
    ceiling = int(window.ceiling / size.scale)
    talk = max((ceiling - size.fixed) * window.compact_at // 100, ceiling // _LEAST_TALK, _SMALLEST)
    return Allowance(size.fixed + talk, talk // 2, ceiling)


_ABOUT = 1.5
"""Two refusals mean the same limit where neither size is more than so many times the other."""
_CLOSE = 0.5
_RAISED = 1.25


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """What one model is believed to take."""

    model: str
    tokens: int
    refused_tokens: int = 0
    """How big the request was that taught it."""
    is_confirmed: bool = True
    """Nothing raises it any more."""
    stated_limit: int = 0
    """The limit that the refusal named; 0: none."""
    configured_tokens: int = 0
    """The window there was by settings or endpoint when it was learned; 0: neither had said."""

    def after_refusal(
        self, refused: int, tokens: int, said: ContextWindow, named: int | None = None
    ) -> "LearnedWindow":
        """What to believe after one more refusal, which may have named a limit."""
        is_same_size = max(refused, self.refused_tokens) <= _ABOUT * min(refused, self.refused_tokens)
        is_same_limit = named is not None and named == self.stated_limit
        return LearnedWindow(
            self.model, tokens, refused, is_same_size or is_same_limit, named or 0, _told_tokens(said)
        )

    def after_reply(self, taken: int) -> "LearnedWindow":
        """What to believe after a request of this size was taken."""
        return self.raised() if taken >= _CLOSE * self.tokens else self

    def raised(self) -> "LearnedWindow":
        """What to believe where a conversation was made shorter for its sake, which may have been in vain."""
        return self if self.is_confirmed else replace(self, tokens=int(self.tokens * _RAISED))

    def within(self, said: ContextWindow) -> ContextWindow:
        """The window to keep to where this one is said; as long as this is not sure, nothing is hopeless."""
        is_outdated = _told_tokens(said) not in (0, self.configured_tokens)
        if self.tokens >= said.tokens or is_outdated:
            return said
        # What was refused is more than anybody says; the room for a reply was taken off there.
        return replace(said, tokens=self.tokens, reserve=0, source=said.source if self.is_confirmed else "assumed")

    def as_state(self) -> dict[str, Any]:
        """As it stands in the state."""
        return asdict(self)


def learned_from(context: Mapping[str, Any], model: str) -> LearnedWindow | None:
    """What was learned of this model; None: nothing, or of another one."""
    learned = context.get("learned_limits") or {}
    if learned.get("model") != model:
        return None
    return LearnedWindow(
        model,
        int(learned["tokens"]),
        int(learned.get("refused_tokens", 0)),
        bool(learned.get("is_confirmed", True)),
        int(learned.get("stated_limit", 0)),
        int(learned.get("configured_tokens", 0)),
    )


def _told_tokens(said: ContextWindow) -> int:
    """What settings or endpoint say; 0 where it is a table or nobody, as before the endpoint was asked."""
    return said.tokens if said.source in ("set", "endpoint") else 0
