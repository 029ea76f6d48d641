"""The node that reports the results to the model: one message per call, in order, in one superstep."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from graph_agent.calls import FINAL, USER_DECISION, ToolCallInfo
from graph_agent.errors import InternalError
from graph_agent.graph.edges import EdgeOutcome, turn_outcome
from graph_agent.graph.history import newest_calls, tool_message_text
from graph_agent.graph.limits import (
    HELD_BACK,
    counted,
    exhausted,
    steps_used_up,
    turn_usage_of_calls,
    usage_of_calls,
)
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.tool_routing import shown_by
from graph_agent.ports.usage import add_usage

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState, TurnState

__all__ = ["COMPLETION_TOOL", "Observation"]

COMPLETION_TOOL = "attempt_completion"
"""Name of the tool by which the model declares its work complete."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Writes every tool message of a model message at once, so that no history ever has a call half answered."""

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
                raise InternalError(f"call {call_id} is {call['status']}, thread {here.thread_id} cannot go on yet")
            finals.append(call)
        before: TurnState = state.get("turn") or {}
        if run.budget_reset not in ("", before.get("budget_reset")):
            before = {**before, "steps": 0, "sub_agent_requests": 0, "usage": {}, "budget_reset": run.budget_reset}
        failures = counted(before.get("consecutive_failures") or {}, finals)
        turn: TurnState = {**before}
        if failures or "consecutive_failures" in before:
            turn["consecutive_failures"] = failures
        of_turn = turn_usage_of_calls(finals, run.stopped_usage)
        if requests := of_turn.get("requests"):
            turn["sub_agent_requests"] = int(turn.get("sub_agent_requests", 0)) + requests
        outcome, pause = _outcome(finals, turn, run)
        if ended := turn_outcome("observation", outcome):
            turn = {**turn, "outcome": ended, **pause}
        update: dict[str, Any] = {"messages": [_message(call) for call in finals]}
        if spent := usage_of_calls(finals, run.stopped_usage):
            turn["usage"] = add_usage(turn.get("usage"), of_turn)
            update["usage"] = add_usage(state.get("usage"), spent)
        return Step(outcome, update if turn == state.get("turn") else {**update, "turn": turn})


def _outcome(calls: list[ToolCallInfo], turn: "TurnState", run: RunContext) -> "tuple[EdgeOutcome, TurnState]":
    """What follows, and for a limit which one it is, as `reason` and `budget` of the turn."""
    if run.stop:
        return "stopped", {}
    is_declared = any(call["tool_name"] == COMPLETION_TOOL for call in calls)
    if is_declared and all(call["status"] == "success" for call in calls):
        # Declared beside a call that went wrong, it was declared too early: the model has to hear of that first.
        return "completed", {}
    held_back = next((call.get("reason", "") for call in calls if call.get("decision") == HELD_BACK), "")
    if why := held_back or exhausted(turn.get("consecutive_failures") or {}):
        return "limit", {"reason": why}
    steps = int(turn.get("steps", 0)) + int(turn.get("sub_agent_requests", 0))
    return ("limit", steps_used_up(steps)) if steps >= run.max_steps else ("observed", {})


def _message(call: ToolCallInfo) -> ToolMessage:
    return ToolMessage(
        content=tool_message_text(call),
        tool_call_id=call["call_id"],
        name=call["tool_name"],
        status="success" if call["status"] == "success" else "error",
        additional_kwargs={**_images(call), **shown_by(call), **_decided(call)},
        id=f"tool-{call['call_id']}",
    )


def _decided(call: ToolCallInfo) -> dict[str, Any]:
    is_by_person = call["status"] == "cancelled" and call.get("decision") != "deny"
    return {USER_DECISION: True} if is_by_person else {}


def _images(call: ToolCallInfo) -> dict[str, Any]:
    """References of what a model that sees is shown; the images themselves never stand in the state."""
    images = call.get("metadata", {}).get("images")
    return {"images": images} if call["status"] == "success" and isinstance(images, list) else {}
