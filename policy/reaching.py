"""What the rules say to a network host that no call was judged for: where a redirection leads, what is private."""

from typing import NamedTuple

from policy.chain import judge
from policy.facts import CallFacts, PolicySettings
from policy.matching import allows

__all__ = ["Reach", "reach_of"]


class Reach(NamedTuple):
    """How far a host may be reached."""

    is_denied: bool
    is_allowed: bool
    """Unasked."""
    is_named: bool
    """By an allow rule that names it, or a domain it is in: then it may also lie in a private network."""


def reach_of(facts: CallFacts, settings: PolicySettings) -> Reach:
    """Judge a call by its host; the facts name one."""
    decision = judge(facts, settings)
    naming = [rule for rule in settings.rules.allow if (rule.pattern or "").partition(":")[0].strip("*. ")]
    is_named = allows(naming, facts, settings, None) is not None
    return Reach(decision.verdict == "deny", decision.verdict == "allow", is_named)
