"""The node that reports the results to the model: one message per call, in order, in one superstep."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from graph_agent.calls import FINAL, USER_DECISION, ToolCallInfo
from graph_agent.errors import InternalError
from graph_agent.graph.history import newest_calls, tool_message_text
from graph_agent.graph.limits import LIMIT_DECISION, count_failures, step_limit, too_many_refusals, usage_of_calls
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.tool_routing import shown_by
from graph_agent.ports.usage import add_usage

if TYPE_CHECKING:
    from graph_agent.graph.edges import EdgeOutcome
    from graph_agent.graph.state import AgentState, TurnState

__all__ = ["COMPLETION_TOOL", "Observation"]

COMPLETION_TOOL = "attempt_completion"
"""Name of the tool by which the model declares its work complete."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Writes all tool messages for a model message at once, so that every call in the history has its result."""

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: observed, completed, limit, stopped.

        Raises:
            InternalError: a call is not final, which routing must have prevented.
        """
        calls = state["calls"]
        finals: list[ToolCallInfo] = []
        for call_id, *_ in newest_calls(state["messages"]):
            call = calls[call_id]
            if call["status"] not in FINAL:
                raise InternalError(
                    f"call {call_id} is {call['status']}, thread {here.thread_id} cannot continue yet"
                )
            finals.append(call)
        before: TurnState = state.get("turn") or {}
        if run.budget_reset not in ("", before.get("budget_reset")):
            before = {**before, "steps": 0, "sub_agent_requests": 0, "usage": {}, "budget_reset": run.budget_reset}
        failures = count_failures(before.get("consecutive_failures") or {}, finals)
        turn: TurnState = {**before}
        if failures or "consecutive_failures" in before:
            turn["consecutive_failures"] = failures
        of_turn = usage_of_calls(finals, run.stopped_usage, of_turn=True)
        if requests := of_turn.get("requests"):
            turn["sub_agent_requests"] = int(turn.get("sub_agent_requests", 0)) + requests
        outcome, ended = _outcome(finals, turn, run)
        turn = {**turn, **ended}
        update: dict[str, Any] = {"messages": [_message(call) for call in finals]}
        if spent := usage_of_calls(finals, run.stopped_usage):
            turn["usage"] = add_usage(turn.get("usage"), of_turn)
            update["usage"] = add_usage(state.get("usage"), spent)
        return Step(outcome, update if turn == state.get("turn") else {**update, "turn": turn})


def _outcome(calls: list[ToolCallInfo], turn: "TurnState", run: RunContext) -> "tuple[EdgeOutcome, TurnState]":
    """What follows, and what the turn says of its end, for a limit also which one; nothing while it continues."""
    if run.stop:
        return "stopped", {"outcome": "stopped"}
    is_declared = any(call["tool_name"] == COMPLETION_TOOL for call in calls)
    if is_declared and all(call["status"] == "success" for call in calls):
        # Declared beside a call that went wrong, it was declared too early: the model has to see that result first.
        return "completed", {"outcome": "done"}
    held = next((call.get("reason", "") for call in calls if call.get("decision") == LIMIT_DECISION), "")
    if reason := held or too_many_refusals(turn.get("consecutive_failures") or {}):
        return "limit", {"outcome": "limit", "reason": reason}
    steps = int(turn.get("steps", 0)) + int(turn.get("sub_agent_requests", 0))
    return ("limit", {"outcome": "limit", **step_limit(steps)}) if steps >= run.max_steps else ("observed", {})


def _message(call: ToolCallInfo) -> ToolMessage:
    kwargs: dict[str, Any] = {**shown_by(call)}
    images = call.get("metadata", {}).get("images")
    if call["status"] == "success" and isinstance(images, list):
        kwargs["images"] = images  # References: the images themselves are never in the state.
    if call["status"] == "cancelled" and call.get("decision") != "deny":
        kwargs[USER_DECISION] = True
    return ToolMessage(
        content=tool_message_text(call),
        tool_call_id=call["call_id"],
        name=call["tool_name"],
        status="success" if call["status"] == "success" else "error",
        additional_kwargs=kwargs,
        id=f"tool-{call['call_id']}",
    )
