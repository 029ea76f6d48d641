"""A toolbox whose tools are told apart by their names: what policy says and what running does is in the name.

read_*    low risk, read-only, allowed        write_*   medium risk, asks
deny_*    denied by policy                    bad_*     unusable
fail_*    low risk, allowed, ends in an error
slow_*    like write_*, runs until it is cancelled
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Finding, GrantEffect, Intent, Outcome, PreparedCall, Proposal, Scope

__all__ = ["ScriptedToolbox"]


class ScriptedToolbox:
    """Plans and runs by name, and keeps what was run."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.denied_now: set[str] = set()
        """Tools that policy denies from now on, whatever it said before."""
        self.entered = asyncio.Event()
        self.finding = Finding("unknown", "nobody can tell")

    def declarations(self, mode: str, loaded: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
        """One tool, named after the mode."""
        return [{"type": "function", "function": {"name": f"tool_in_{mode}", "parameters": {"type": "object"}}}]

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """What the name says."""
        kind = tool_name.partition("_")[0]
        given = dict(arguments)
        if tool_name in self.denied_now:
            return PreparedCall(tool_name, given, "deny", "denied by now", "late rule")
        match kind:
            case "read" | "fail" | "attempt":
                return PreparedCall(
                    tool_name, given, "allow", "it only reads", "risk low", "low", "readonly", kind == "read"
                )
            case "write" | "slow":
                if scope.mode == "dontAsk":
                    return PreparedCall(tool_name, given, "deny", "nobody to ask", "dontAsk", "medium", "write")
                return PreparedCall(tool_name, given, "ask", "it writes", "risk medium", "medium", "write")
            case "deny":
                return PreparedCall(tool_name, given, "deny", "a rule says so", "deny rule")
        return PreparedCall(tool_name, given, "unusable", f"there is no tool {tool_name!r}")

    async def propose(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, effect: GrantEffect = "allow"
    ) -> Proposal:
        """A rule for the tool as a whole."""
        return Proposal((tool_name,))

    async def record_intent(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """A file for what writes."""
        return Intent("/w/file", None, "0" * 64) if call.get("kind") == "write" else None

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """Note the call and end as its name says."""
        self.ran.append((call["call_id"], call["arguments"]))
        self.entered.set()
        match call["tool_name"].partition("_")[0]:
            case "slow":
                await asyncio.sleep(3600)
            case "fail":
                return Outcome("error", "partial", "it broke")
        return Outcome("success", f"result of {call['call_id']}")

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:
        """The finding that was set."""
        return self.finding

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """What a slow call wrote before it was broken off."""
        return f"half of attempt {attempt}" if call["tool_name"].startswith("slow") else ""
