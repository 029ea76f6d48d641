"""Whether the next model request would surely pass a budget, and the words for it. Knows no node and no price."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graph_agent.ports.purse import Purse
from graph_agent.ports.spending import Budget

__all__ = ["drawn", "passed", "steps_used_up"]

_AFRESH = "going on begins with a fresh budget"


class _Account(NamedTuple):
    """One budget with what was used of it so far, and what the next request will use at least."""

    name: str
    """The setting, which the flag is named after where there is one."""
    of: str
    limit: float | None
    used: float | None
    """None: nobody knows, because a price is missing."""
    least: float | None
    """None as above."""
    unit: str


def passed(
    budget: Budget, spent: tuple[Mapping[str, Any], Mapping[str, Any]], least: tuple[int, float | None]
) -> dict[str, str]:
    """Why the next request is not made, as `why` and `budget` of the turn; empty when it may be.

    Args:
        budget: what may be used.
        spent: the turn and the state, each with its `usage`.
        least: tokens and cost that the request will use whatever the answer is; None where no price is known.
    """
    for account in _accounts(budget, spent, least):
        if account.limit is not None and (why := _why(account, account.limit)):
            return {"budget": account.name, "why": why}
    return {}


def drawn(purse: Purse, thread_id: str, least: tuple[int, float | None]) -> dict[str, Any]:
    """The same where others draw on the budget, too; where the request may be made, it counts from here on."""
    turn, thread = purse.used()
    pause = (
        steps_used_up(purse.max_steps)
        if purse.steps >= purse.max_steps
        else passed(purse.budget, ({"usage": turn}, {"usage": thread}), least)
    )
    if pause:
        return {**pause, "shared": True}
    purse.ask(thread_id, least)
    return {}


def steps_used_up(steps: int) -> dict[str, str]:
    """The same for the model requests of a turn."""
    requests = "1 model request" if steps == 1 else f"{steps} model requests"
    return {"budget": "max_steps", "why": f"it made {requests}, as many as max_steps allows; {_AFRESH}"}


def _accounts(
    budget: Budget, spent: tuple[Mapping[str, Any], Mapping[str, Any]], least: tuple[int, float | None]
) -> Iterator[_Account]:
    turn, thread = (part.get("usage") or {} for part in spent)
    tokens, cost = least
    currency = str(turn.get("currency") or thread.get("currency") or "")
    yield _Account("max_tokens", "turn", budget.max_tokens, turn.get("total_tokens", 0), tokens, "tokens")
    yield _Account("max_cost", "turn", budget.max_cost, _cost(turn), cost, currency)
    yield _Account(
        "max_thread_tokens", "thread", budget.max_thread_tokens, thread.get("total_tokens", 0), tokens, "tokens"
    )
    yield _Account("max_thread_cost", "thread", budget.max_thread_cost, _cost(thread), cost, currency)


def _cost(usage: Mapping[str, Any]) -> float | None:
    return None if usage.get("unpriced_requests") else float(usage.get("cost") or 0.0)


def _why(account: _Account, limit: float) -> str:
    name, of = account.name, account.of
    further = _AFRESH if of == "turn" else f"raise {name} to go on"
    if account.used is None or account.least is None:
        return f"the cost of this {of} is not known, so {name} cannot be kept: [prices] lacks the model"
    if account.used >= limit:
        used = _shown(account.used, account.unit)
        return f"this {of} used {used} of the {_shown(limit, account.unit)} that {name} allows; {further}"
    if account.used + account.least > limit:
        return (
            f"the next request takes {_shown(account.least, account.unit)} or more, this {of} has "
            f"{_shown(limit - account.used, account.unit)} left of what {name} allows; "
            f"{further if account.used or of == 'thread' else f'raise {name} to go on'}"
        )
    return ""


def _shown(amount: float, unit: str) -> str:
    return f"{amount:,.0f} {unit}" if unit == "tokens" else f"{amount:.4f} {unit}".strip()
