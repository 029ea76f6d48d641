"""What model requests use: counts that are added up, and the budgets they are held against. JSON values only.

A usage is stored as a plain object: tokens and `requests`; `estimated_requests`, of those whose tokens nobody told;
`cost` with its `currency`, of those whose price is known, and `unpriced_requests`, of those whose price is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["TOKENS", "UNLIMITED", "Budget", "summed", "told_usage"]

TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens")
"""Cached tokens are part of the input, reasoning tokens part of the output."""

_ADDED = (*TOKENS, "requests", "estimated_requests", "unpriced_requests")
_CENTS_OF_CENTS = 10
"""Decimal places of an amount: what floating point adds beyond them was never spent."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be used before a person is asked; None is without limit. Steps are limited apart from it."""

    max_tokens: int | None = None
    """Of one turn."""
    max_cost: float | None = None
    """Of one turn."""
    max_thread_tokens: int | None = None
    max_thread_cost: float | None = None

    @property
    def limits_cost(self) -> bool:
        """Whether prices have to be known to keep it."""
        return self.max_cost is not None or self.max_thread_cost is not None


UNLIMITED = Budget()


def summed(total: Mapping[str, Any] | None, usage: Mapping[str, Any]) -> dict[str, Any]:
    """Both together. Amounts in two currencies are no amount: the later requests count as unpriced."""
    before = dict(total or {})
    added = before | {
        key: _number(before.get(key)) + _number(usage[key]) for key in _ADDED if _number(usage.get(key))
    }
    cost, currency = usage.get("cost"), usage.get("currency")
    if not isinstance(cost, int | float):
        return added
    if "cost" in before and before.get("currency") != currency:
        added["unpriced_requests"] = _number(added.get("unpriced_requests")) + _number(usage.get("requests"))
        return added
    return {**added, "cost": round(before.get("cost", 0.0) + cost, _CENTS_OF_CENTS), "currency": currency}


def told_usage(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """A usage as others are told: every count, whether any of it is estimated, and the cost, None where unknown."""
    known = usage or {}
    counts = {key: _number(known.get(key)) for key in (*TOKENS, "requests")}
    is_priced = not _number(known.get("unpriced_requests")) and (not counts["total_tokens"] or "cost" in known)
    return {
        **counts,
        "estimated": bool(_number(known.get("estimated_requests"))),
        "cost": known.get("cost", 0.0) if is_priced else None,
        "currency": known.get("currency") if is_priced else None,
    }


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
