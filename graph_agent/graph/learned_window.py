"""How many tokens a model takes, as learned from what it refused and from what it took. Pure.

A refusal that names no limit may be an error of the provider. It binds the thread for as long as nothing speaks
against it: requests that are taken close to the limit raise it, until a second refusal at about the same size.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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

    def after_refusal(self, refused: int, tokens: int, *, is_told: bool) -> "LearnedWindow":
        """What to believe after one more refusal; `is_told`: the model named its limit."""
        is_same = max(refused, self.refused) <= _ABOUT * min(refused, self.refused)
        return LearnedWindow(self.model, tokens, refused, is_told or is_same)

    def after_reply(self, taken: int) -> "LearnedWindow":
        """What to believe after a request of this size was taken."""
        if self.is_sure or taken < _CLOSE * self.tokens:
            return self
        return LearnedWindow(self.model, int(self.tokens * _RAISED), self.refused, is_sure=False)

    def as_state(self) -> dict[str, Any]:
        """As it stands in the state."""
        return asdict(self)


def learned_from(context: Mapping[str, Any], model: str) -> LearnedWindow | None:
    """What was learned of this model; None: nothing, or of another one."""
    learned = context.get("learned") or {}
    if learned.get("model") != model:
        return None
    return LearnedWindow(
        model, int(learned["tokens"]), int(learned.get("refused", 0)), bool(learned.get("is_sure", True))
    )
