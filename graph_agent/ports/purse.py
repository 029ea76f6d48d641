"""A budget that several threads draw on at once: a turn with those that work for it. Counts, in memory only.

What a thread has used stands in its state; here it is added up while those states cannot know of each other.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graph_agent.ports.spending import Budget, summed

__all__ = ["Purse", "Used"]


class Used(NamedTuple):
    """What requests used, as far as a state tells."""

    turn: Mapping[str, Any] = {}
    thread: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Share:
    parent: str
    call_id: str
    used: Used
    is_over: bool = False


@dataclass(slots=True)
class Purse:
    """What one turn and its thread may use, with what its sub-agents have used of it so far."""

    budget: Budget
    max_steps: int
    _own: Used = field(default_factory=Used)
    _own_steps: int = 0
    _shares: dict[str, _Share] = field(default_factory=dict)
    _asked: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Tokens and cost that the requests under way take at least, by thread."""

    @property
    def steps(self) -> int:
        """Model requests of the turn, those under way among them."""
        below = sum(int(share.used.turn.get("requests", 0)) for share in self._shares.values())
        return self._own_steps + below + len(self._asked)

    def begin(self, thread_id: str, used: Used, steps: int, open_calls: Collection[str]) -> None:
        """What the owner's own state tells now; that of sub-agents whose calls have ended is part of it."""
        self._own, self._own_steps = used, steps
        self.forget_told(thread_id, open_calls)

    def forget_told(self, thread_id: str, open_calls: Collection[str]) -> None:
        """Leave out sub-agents whose calls have ended, and those below them: the owner's state tells of them."""
        told = [
            child
            for child, share in self._shares.items()
            if share.is_over and share.parent == thread_id and share.call_id not in open_calls
        ]
        while told:
            for child in told:
                del self._shares[child]
            above = {thread_id, *self._shares}
            told = [child for child, share in self._shares.items() if share.parent not in above]

    def join(self, thread_id: str, parent: str, call_id: str, used: Used) -> None:
        """A sub-agent draws on it from now on, and has used so much already."""
        self._shares[thread_id] = _Share(parent, call_id, used)

    def note(self, thread_id: str, used: Used) -> None:
        """What the state of a sub-agent tells from now on; those below it that have ended are part of it."""
        if thread_id in self._shares:
            self._shares[thread_id].used = used
        for child in [c for c, share in self._shares.items() if share.is_over and share.parent == thread_id]:
            del self._shares[child]

    def leave(self, thread_id: str) -> None:
        """A sub-agent has ended; what it used counts here until a state tells it."""
        if thread_id in self._shares:
            self._shares[thread_id].is_over = True

    def ask(self, thread_id: str, least: tuple[int, float | None]) -> None:
        """A request begins that takes at least so many tokens, and so much."""
        self._asked[thread_id] = (least[0], least[1] or 0.0)

    def answered(self, thread_id: str) -> None:
        """It has ended, or failed."""
        self._asked.pop(thread_id, None)

    def below(self) -> Used:
        """By the sub-agents alone, as far as the owner's state does not tell it."""
        turn: Mapping[str, Any] = {}
        thread: Mapping[str, Any] = {}
        for share in self._shares.values():
            turn, thread = summed(turn, share.used.turn), summed(thread, share.used.thread)
        return Used(turn, thread)

    def used(self) -> Used:
        """By all of them, with what the requests under way take at least."""
        below = self.below()
        turn, thread = summed(self._own.turn, below.turn), summed(self._own.thread, below.thread)
        tokens = sum(tokens for tokens, _ in self._asked.values())
        cost = sum(cost for _, cost in self._asked.values())
        return Used(_with(turn, tokens, cost), _with(thread, tokens, cost))


def _with(usage: dict[str, Any], tokens: int, cost: float) -> dict[str, Any]:
    if not tokens:
        return usage
    return {**usage, "total_tokens": usage.get("total_tokens", 0) + tokens, "cost": usage.get("cost", 0.0) + cost}
