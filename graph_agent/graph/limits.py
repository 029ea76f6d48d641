"""Budgets of a turn, repeated failures, and the usage of calls: when a turn ends at a limit, and the reason given.

A model that makes no progress repeats itself. The turn then ends at its limit: nothing is lost, and a person
decides.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.usage import UNLIMITED, Budget, SharedBudget, UsageTotals, add_usage

if TYPE_CHECKING:
    from graph_agent.graph.state import ConsecutiveFailures, TurnState

__all__ = [
    "LIMIT_DECISION",
    "budget_limit",
    "count_failures",
    "reserve_request",
    "step_limit",
    "too_many_failures",
    "too_many_refusals",
    "usage_of_calls",
]

_NEW_BUDGET = "continuing starts a new budget"


class _Account(NamedTuple):
    """One budget, what was used of it, and what the next request uses at least; None where no price is known."""

    name: str
    """The setting, which the flag is named after where there is one."""
    of: str
    limit: float | None
    used: float | None
    minimum: float | None
    unit: str

    def amount(self, value: float) -> str:
        return f"{value:,.0f} {self.unit}" if self.unit == "tokens" else f"{value:.4f} {self.unit}".strip()


def budget_limit(budget: Budget, used: UsageTotals, minimum: tuple[int, float | None]) -> "TurnState":
    """The `reason` and `budget` of the turn if the next request would exceed a budget; otherwise empty.

    Args:
        budget: what may be used.
        used: what turn and thread have used.
        minimum: tokens and cost that the request uses whatever the answer is; None where no price is known.
    """
    if budget == UNLIMITED:
        return {}
    turn, thread = used
    turn_cost, thread_cost = (
        None if usage.get("unpriced_requests") else float(usage.get("cost") or 0.0) for usage in used
    )
    tokens, cost = minimum
    currency = str(turn.get("currency") or thread.get("currency") or "")
    for account in (
        _Account("max_tokens", "turn", budget.max_tokens, turn.get("total_tokens", 0), tokens, "tokens"),
        _Account("max_cost", "turn", budget.max_cost, turn_cost, cost, currency),
        _Account(
            "max_thread_tokens", "thread", budget.max_thread_tokens, thread.get("total_tokens", 0), tokens, "tokens"
        ),
        _Account("max_thread_cost", "thread", budget.max_thread_cost, thread_cost, cost, currency),
    ):
        if account.limit is not None and (reason := _reason(account, account.limit)):
            return {"budget": account.name, "reason": reason}
    return {}


def _reason(account: _Account, limit: float) -> str:
    name, of, used, minimum = account.name, account.of, account.used, account.minimum
    if used is None or minimum is None:
        return f"the cost of this {of} is unknown, so {name} cannot be enforced: add the model to [prices]"
    # A new turn begins a new budget, unless not even its first request fits that.
    advice = _NEW_BUDGET if of == "turn" and used else f"raise {name} to continue"
    if used >= limit:
        return f"this {of} used {account.amount(used)} of the {account.amount(limit)} that {name} allows; {advice}"
    if used + minimum > limit:
        left = account.amount(limit - used)
        return (
            f"the next request needs at least {account.amount(minimum)}, but this {of} has {left} left of what "
            f"{name} allows; {advice}"
        )
    return ""


def reserve_request(shared: SharedBudget, thread_id: str, minimum: tuple[int, float | None]) -> "TurnState":
    """The same for a budget shared with sub-agents; an allowed request counts from now on."""
    if shared.steps >= shared.max_steps:
        limit = step_limit(shared.max_steps)
    else:
        limit = budget_limit(shared.budget, shared.total_usage(), minimum)
    if limit:
        return {**limit, "shared": True}
    shared.begin_request(thread_id, minimum)
    return {}


def step_limit(steps: int) -> "TurnState":
    """The `reason` and `budget` of a turn that has used up its model requests."""
    requests = "1 model request" if steps == 1 else f"{steps} model requests"
    return {
        "budget": "max_steps",
        "reason": f"it made {requests}, the limit set by max_steps; {_NEW_BUDGET}",
    }


LIMIT_DECISION = "limit"
"""The decision of calls that did not run because of what went wrong before."""

_MAX_TIMEOUTS = 3
_MAX_FAILURES = 3
_MAX_REFUSALS = 3
_MAX_NEVER_RAN = 5


def count_failures(before: Mapping[str, Any], calls: Iterable[ToolCallInfo]) -> "ConsecutiveFailures":
    """The counts after these calls of one message ended."""
    timeouts, failures, rejections = (dict(before.get(key) or {}) for key in ("timeouts", "failures", "rejections"))
    never_ran = before.get("never_ran") or {}
    for call in calls:
        tool, key, cause = call["tool_name"], _call_key(call), ""
        if not call.get("started"):
            if call["status"] == "error":
                cause = "the tool is unknown or its arguments were invalid"
            elif call.get("decision") == "deny":
                cause = f"denied by {call.get('rule') or 'policy'}"
        elif call["status"] in ("success", "error"):
            is_timeout = (call.get("metadata") or {}).get("error_type") == "timeout"
            is_failure = call["status"] == "error"
            for counted, name, happened in ((timeouts, tool, is_timeout), (failures, key, is_failure)):
                earlier = counted.pop(name, 0)
                if happened:
                    counted[name] = earlier + 1
        # Arguments that could not be read are not in the record: such calls need not be the same.
        if call.get("decision") in ("reject", "deny") or (cause and call["arguments"]):
            rejections[key] = rejections.get(key, 0) + 1
        count = never_ran.get("count", 0) + 1 if never_ran.get("key") == [tool, cause] else 1
        never_ran = {"key": [tool, cause], "count": count} if cause else {}
    counts = {"timeouts": timeouts, "failures": failures, "rejections": rejections, "never_ran": never_ran}
    return cast("ConsecutiveFailures", {name: count for name, count in counts.items() if count})


def too_many_failures(counts: Mapping[str, Any], calls: Iterable[ToolCallInfo]) -> str:
    """Why the turn should pause before it runs further calls; empty if it should not."""
    for call in calls:
        if call["status"] not in ("pending", "awaiting_approval"):
            continue
        if (counts.get("timeouts") or {}).get(call["tool_name"], 0) >= _MAX_TIMEOUTS:
            return f"{call['tool_name']} ran into its time limit {_MAX_TIMEOUTS} times in a row"
        if (counts.get("failures") or {}).get(_call_key(call), 0) >= _MAX_FAILURES:
            return f"the same call of {call['tool_name']} failed {_MAX_FAILURES} times in a row"
    return ""


def too_many_refusals(counts: Mapping[str, Any]) -> str:
    """Why the turn should pause before the next model request; empty if it should not."""
    if any(count >= _MAX_REFUSALS for count in (counts.get("rejections") or {}).values()):
        return f"the same call was refused {_MAX_REFUSALS} times"
    never_ran = counts.get("never_ran") or {}
    if never_ran.get("count", 0) >= _MAX_NEVER_RAN:
        tool, cause = never_ran["key"]
        return f"{_MAX_NEVER_RAN} calls of {tool} in a row could not run: {cause}"
    return ""


def _call_key(call: ToolCallInfo) -> str:
    """Tool and arguments, whatever the order of the arguments."""
    text = json.dumps([call["tool_name"], call["arguments"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def usage_of_calls(
    calls: Iterable[ToolCallInfo], stopped_usage: Mapping[str, Mapping[str, Any]], *, of_turn: bool = False
) -> dict[str, Any]:
    """The usage in the metadata of calls, added up.

    Args:
        calls: the finished calls.
        stopped_usage: what is known of calls without it, by call id.
        of_turn: only what counts for the turn; a call that continued on a new budget says so itself.
    """
    total: dict[str, Any] = {}
    for call in calls:
        metadata = call.get("metadata") or {}
        usage = (metadata.get("turn_usage") if of_turn else None) or metadata.get("usage")
        usage = usage or stopped_usage.get(call["call_id"])
        if isinstance(usage, Mapping):
            total = add_usage(total, usage)
    return total
