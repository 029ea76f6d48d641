"""How often and how long to wait before a request is made again. Knows no transport and no clock."""

import random
from collections import Counter

from graph_agent.model.failures import Failure

__all__ = ["MAX_RETRY_AFTER_S", "MOST_TRIES", "TRIES_BEFORE_ANOTHER", "Patience"]

MAX_RETRY_AFTER_S = 60.0
"""A server that wants a longer wait is not waited for."""

_MOST = {"final": 0, "too_long": 0, "unreachable": 2, "empty": 3, "busy": 6, "broken": 6}
MOST_TRIES = _MOST["busy"] + 1
"""Requests for one reply, whatever goes wrong with them."""
TRIES_BEFORE_ANOTHER = 5
"""As many where another model can be asked instead: one that is busy is left after some eight seconds."""
_FIRST_WAIT_S = 0.5
_JITTER = 0.25


class Patience:
    """What is left of it, for one request."""

    def __init__(self, jitter: random.Random | None = None, *, most_tries: int = MOST_TRIES) -> None:
        self.tries = 1
        """Requests made, the running one among them."""
        self._most_tries = most_tries
        self._by_kind: Counter[str] = Counter()
        self._jitter = jitter or random.Random()  # noqa: S311 -- spreads waits, guards nothing

    def wait_after(self, failure: Failure) -> float | None:
        """Seconds until the next try, which this counts; None: there is none."""
        self._by_kind[failure.kind] += 1
        asked = failure.retry_after_s or 0.0
        if (
            self._by_kind[failure.kind] > _MOST[failure.kind]
            or asked > MAX_RETRY_AFTER_S
            or self.tries >= self._most_tries
        ):
            return None
        doublings = self._by_kind[failure.kind] if failure.kind == "unreachable" else self.tries
        self.tries += 1
        wait = _FIRST_WAIT_S * 2.0 ** (doublings - 1)
        return max(wait, asked) + wait * _JITTER * self._jitter.random()

    def last_words(self, failure: Failure) -> str:
        """The failure's line, with why it is not tried again."""
        if (failure.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            return f"{failure.line} It asks for a wait of {failure.retry_after_s:.0f} s: try again later."
        return failure.line if self.tries == 1 else f"{failure.line} Gave up after {self.tries} tries."
