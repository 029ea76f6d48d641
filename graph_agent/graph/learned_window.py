"""How many tokens a model takes, as learned from what it refused and from what it took. Pure.

One refusal may be an error of the provider, also one that names a limit: a router that asked a smaller model once,
a proxy with a limit of its own. So it is tried again: each request that is taken close to the limit raises it, and
each compaction for its sake, until a second refusal says about the same. What the settings or the endpoint say anew
goes before it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from graph_agent.ports.window import Window

__all__ = ["LearnedWindow", "learned_from"]

_ABOUT = 1.5
"""Two refusals mean the same limit where neither size is more than so many times the other."""
_CLOSE = 0.5
_RAISED = 1.25


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """What one model is believed to take."""

    model: str
    tokens: int
    refused: int = 0
    """How big the request was that taught it."""
    is_sure: bool = True
    """Nothing raises it any more."""
    named: int = 0
    """The limit that the refusal named; 0: none."""
    said: int = 0
    """The window there was by settings or endpoint when it was learned; 0: neither had said."""

    def after_refusal(self, refused: int, tokens: int, said: Window, named: int | None = None) -> "LearnedWindow":
        """What to believe after one more refusal, which may have named a limit."""
        is_same_size = max(refused, self.refused) <= _ABOUT * min(refused, self.refused)
        is_same_limit = named is not None and named == self.named
        return LearnedWindow(
            self.model, tokens, refused, is_same_size or is_same_limit, named or 0, _told_tokens(said)
        )

    def after_reply(self, taken: int) -> "LearnedWindow":
        """What to believe after a request of this size was taken."""
        return self.raised() if taken >= _CLOSE * self.tokens else self

    def raised(self) -> "LearnedWindow":
        """What to believe where a conversation was made shorter for its sake, which may have been in vain."""
        return self if self.is_sure else replace(self, tokens=int(self.tokens * _RAISED))

    def within(self, said: Window) -> Window:
        """The window to keep to where this one is said; as long as this is not sure, nothing is hopeless."""
        is_outdated = _told_tokens(said) not in (0, self.said)
        if self.tokens >= said.tokens or is_outdated:
            return said
        # What was refused is more than anybody says; the room for a reply was taken off there.
        return replace(said, tokens=self.tokens, reserve=0, source=said.source if self.is_sure else "assumed")

    def as_state(self) -> dict[str, Any]:
        """As it stands in the state."""
        return asdict(self)


def learned_from(context: Mapping[str, Any], model: str) -> LearnedWindow | None:
    """What was learned of this model; None: nothing, or of another one."""
    learned = context.get("learned") or {}
    if learned.get("model") != model:
        return None
    return LearnedWindow(
        model,
        int(learned["tokens"]),
        int(learned.get("refused", 0)),
        bool(learned.get("is_sure", True)),
        int(learned.get("named", 0)),
        int(learned.get("said", 0)),
    )


def _told_tokens(said: Window) -> int:
    """What settings or endpoint say; 0 where it is a table or nobody, as before the endpoint was asked."""
    return said.tokens if said.source in ("set", "endpoint") else 0
