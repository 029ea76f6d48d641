"""What a person allowed "always": rules that hold in the mode they were given in and in more permissive ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policy.rules import Rule

__all__ = ["Grant", "fewest", "holds_in"]

_HOLDS_IN: Mapping[str, frozenset[str]] = {
    "plan": frozenset(("plan", "default", "acceptEdits", "auto", "bypassPermissions")),
    "default": frozenset(("default", "acceptEdits", "auto", "bypassPermissions")),
    "acceptEdits": frozenset(("acceptEdits", "bypassPermissions")),
    "auto": frozenset(("auto", "bypassPermissions")),
    "bypassPermissions": frozenset(("bypassPermissions",)),
}
"""Mode a grant was given in: the modes it holds in. In dontAsk, which refuses what others ask, none does."""


@dataclass(frozen=True)
class Grant:
    """One answer "always"."""

    name: str
    """What a reason calls it, e.g. `grant 3 (this thread)`."""
    mode: str
    rules: tuple[Rule, ...]
    place: str = "."
    """Where its commands start, as `CallFacts.place` says it; they mean something else elsewhere."""


def holds_in(grant: Grant, mode: str) -> bool:
    """Whether the grant speaks in this mode."""
    return mode in _HOLDS_IN.get(grant.mode, frozenset())


def fewest(grants: Sequence[Grant], suffice: Callable[[Sequence[Grant]], bool]) -> Sequence[Grant]:
    """Those of the grants, which suffice together, that cannot be left out: the ones a reason names."""
    kept = list(grants)
    for grant in grants:
        others = [one for one in kept if one is not grant]
        if suffice(others):
            kept = others
    return kept
