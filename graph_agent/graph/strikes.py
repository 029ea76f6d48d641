"""How often things went wrong in a row in one turn, and when that is enough. Counts; knows no state and no node.

A model that does not get on repeats itself. The turn then ends at its limit: nothing is lost, and a person decides.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from graph_agent.calls import ToolCallInfo

__all__ = ["HELD_BACK", "counted", "exhausted", "tripped"]

HELD_BACK = "limit"
"""The decision of calls that were not let through because of what went before."""

_TIMEOUTS = 3
_FAILURES = 3
_REFUSALS = 3
_NEVER_RAN = 5

Strikes = Mapping[str, Any]
"""JSON values: `timeouts` by tool, `failures` and `refusals` by call, and `never_ran`, `{key, count}`."""


def counted(strikes: Strikes, calls: Iterable[ToolCallInfo]) -> dict[str, Any]:
    """The counts after these calls of one message came to their end."""
    timeouts, failures, refusals = (dict(strikes.get(key) or {}) for key in ("timeouts", "failures", "refusals"))
    never_ran = strikes.get("never_ran") or {}
    for call in calls:
        tool, key = call["tool_name"], _key(call)
        if call.get("begun") and call["status"] in ("success", "error"):
            is_timeout = (call.get("metadata") or {}).get("error_type") == "timeout"
            _count(timeouts, tool, goes_on=is_timeout)
            _count(failures, key, goes_on=call["status"] == "error")
        elif call.get("decision") == "reject":
            _count(refusals, key, goes_on=True)
        cause = _why_it_never_ran(call)
        count = never_ran.get("count", 0) + 1 if never_ran.get("key") == cause else 1
        never_ran = {"key": cause, "count": count} if cause else {}
    counts = {"timeouts": timeouts, "failures": failures, "refusals": refusals, "never_ran": never_ran}
    return {name: count for name, count in counts.items() if count}


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
    if any(count >= _REFUSALS for count in (strikes.get("refusals") or {}).values()):
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
    if call.get("begun"):
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
