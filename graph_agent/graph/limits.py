"""Budgets of a turn, repeated failures, and the usage of calls: when a turn ends at a limit, and the reason given.

A model that makes no progress repeats itself. The turn then ends at its limit: nothing is lost, and a person
decides.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.usage import Budget, SharedBudget, add_usage

if TYPE_CHECKING:
    from graph_agent.graph.state import ConsecutiveFailures, TurnState

__all__ = [
    "HELD_BACK",
    "counted",
    "drawn",
    "exhausted",
    "passed",
    "steps_used_up",
    "tripped",
    "turn_usage_of_calls",
    "usage_of_calls",
]

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
) -> "TurnState":
    """Why the next request is not made, as `why` and `budget` of the turn; empty when it may be.

    Args:
        budget: what may be used.
        spent: the turn and the state, each with its `usage`.
        least: tokens and cost that the request will use whatever the answer is; None where no price is known.
    """
    for account in _accounts(budget, spent, least):
        if account.limit is not None and (why := _why(account, account.limit)):
            return {"budget": account.name, "reason": why}
    return {}


def drawn(shared_budget: SharedBudget, thread_id: str, least: tuple[int, float | None]) -> "TurnState":
    """The same where others draw on the budget, too; where the request may be made, it counts from here on."""
    turn, thread = shared_budget.total_usage()
    pause = (
        steps_used_up(shared_budget.max_steps)
        if shared_budget.steps >= shared_budget.max_steps
        else passed(shared_budget.budget, ({"usage": turn}, {"usage": thread}), least)
    )
    if pause:
        return {**pause, "shared": True}
    shared_budget.begin_request(thread_id, least)
    return {}


def steps_used_up(steps: int) -> "TurnState":
    """The same for the model requests of a turn."""
    requests = "1 model request" if steps == 1 else f"{steps} model requests"
    return {"budget": "max_steps", "reason": f"it made {requests}, as many as max_steps allows; {_AFRESH}"}


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


HELD_BACK = "limit"
"""The decision of calls that were not let through because of what went before."""

_TIMEOUTS = 3
_FAILURES = 3
_REFUSALS = 3
_NEVER_RAN = 5

Strikes = Mapping[str, Any]
"""JSON values: `timeouts` by tool, `failures` and `refusals` by call, and `never_ran`, `{key, count}`."""


def counted(strikes: Strikes, calls: Iterable[ToolCallInfo]) -> "ConsecutiveFailures":
    """The counts after these calls of one message came to their end."""
    timeouts, failures, refusals = (dict(strikes.get(key) or {}) for key in ("timeouts", "failures", "rejections"))
    never_ran = strikes.get("never_ran") or {}
    for call in calls:
        tool, key = call["tool_name"], _key(call)
        if call.get("started") and call["status"] in ("success", "error"):
            is_timeout = (call.get("metadata") or {}).get("error_type") == "timeout"
            _count(timeouts, tool, goes_on=is_timeout)
            _count(failures, key, goes_on=call["status"] == "error")
        elif call.get("decision") == "reject":
            _count(refusals, key, goes_on=True)
        cause = _why_it_never_ran(call)
        count = never_ran.get("count", 0) + 1 if never_ran.get("key") == cause else 1
        never_ran = {"key": cause, "count": count} if cause else {}
    counts = {"timeouts": timeouts, "failures": failures, "rejections": refusals, "never_ran": never_ran}
    return cast("ConsecutiveFailures", {name: count for name, count in counts.items() if count})


def tripped(strikes: Strikes, calls: Iterable[ToolCallInfo]) -> str:
    """Why calls that the model asks for now should wait for a person first; empty when they need not."""
    for call in calls:
        if call["status"] not in ("pending", "awaiting_approval"):
            continue
        if (strikes.get("timeouts") or {}).get(call["tool_name"], 0) >= _TIMEOUTS:
            return f"{call['tool_name']} ran into its time limit {_TIMEOUTS} times in a row"
        if (strikes.get("failures") or {}).get(_key(call), 0) >= _FAILURES:
            return f"this very call of {call['tool_name']} failed {_FAILURES} times in a row"
    return ""


def exhausted(strikes: Strikes) -> str:
    """Why the model should not be asked again before a person was; empty when it may."""
    never_ran = strikes.get("never_ran") or {}
    if any(count >= _REFUSALS for count in (strikes.get("rejections") or {}).values()):
        return f"the same call was refused {_REFUSALS} times"
    if never_ran.get("count", 0) >= _NEVER_RAN:
        tool, what = never_ran["key"]
        return f"{_NEVER_RAN} calls of {tool} in a row could not run: {what}"
    return ""


def _count(counts: dict[str, int], key: str, *, goes_on: bool) -> None:
    if goes_on:
        counts[key] = counts.get(key, 0) + 1
    else:
        counts.pop(key, None)


def _why_it_never_ran(call: ToolCallInfo) -> list[str]:
    """Tool and cause, of a call that was turned away before it could begin; empty for any other."""
    if call.get("started"):
        return []
    if call["status"] == "error":
        return [call["tool_name"], "it is unknown, or its arguments were unusable"]
    if call.get("decision") == "deny":
        return [call["tool_name"], f"denied by {call.get('rule') or 'policy'}"]
    return []


def _key(call: ToolCallInfo) -> str:
    """Tool and arguments, whatever the order of the arguments."""
    text = json.dumps([call["tool_name"], call["arguments"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def usage_of_calls(calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What calls say they have spent, as `usage` in their metadata; else what is known of it by call id."""
    return _spent(calls, given_up, ("usage",))


def turn_usage_of_calls(calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """As far as it counts for the turn: a call that a person let go on with a fresh budget says so itself."""
    return _spent(calls, given_up, ("turn_usage", "usage"))


def _spent(
    calls: Iterable[ToolCallInfo], given_up: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> dict[str, Any]:
    spent: dict[str, Any] = {}
    for call in calls:
        metadata = call.get("metadata") or {}
        told: Any = next((metadata[name] for name in names if metadata.get(name)), given_up.get(call["call_id"]))
        if isinstance(told, Mapping):
            spent = add_usage(spent, told)
    return spent
