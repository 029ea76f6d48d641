"""What a session returns: the result of a turn, and the questions that are open."""

from dataclasses import dataclass, field
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.events import TurnEnded, TurnStatus
from graph_agent.ports import Question

__all__ = ["OpenQuestion", "TurnResult", "TurnStatus", "turn_ended"]


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question, its call, and what helps to decide."""

    question: Question
    call: ToolCallInfo
    partial_output: str = ""
    """Recovery: what a shell command wrote before it was interrupted (the end of it, bounded)."""
    finding: str = ""
    """Recovery: what the reconciler found, in words; empty if it cannot tell."""
    finding_verdict: str = ""
    """already_applied, not_applied, something_else or unknown; empty for approvals."""
    processes: tuple[int, ...] = ()
    """Recovery: pids that the interrupted command left running; no retry until they have ended."""
    thread_id: str = ""
    """The thread of the call, if a sub-agent asks."""
    sub_agent: str = ""
    """The task of the sub-agent that asks, in a few words; empty if the thread itself asks."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, or what it waits for."""

    status: TurnStatus
    thread_id: str
    checkpoint_id: str
    answer: str = ""
    """The text of the turn's last model message."""
    turn_id: str = ""
    """See `TurnEnded.turn_id`."""
    unmet: str = ""
    """Why the request was not fulfilled, if the offline mode knows; never set for a language model."""
    questions: tuple[OpenQuestion, ...] = ()
    """Open questions without an answer, in the model's order."""
    usage: dict[str, Any] = field(default_factory=dict)
    """What the turn's requests used, in the form of `usage_report`."""
    thread_usage: dict[str, Any] = field(default_factory=dict)
    """The same for the whole thread."""
    error: str | None = None
    budget: str = ""
    """At a limit: the setting whose budget is used up; empty if the model made no progress."""
    is_shared: bool = False
    """For a sub-agent at a limit: whether the limit is its parent's too."""


def turn_ended(result: TurnResult) -> TurnEnded:
    """The event about a result."""
    questions = tuple(
        {
            "call_id": item.question.call_id,
            "thread_id": item.thread_id,
            "tool_name": item.call["tool_name"],
            "kind": item.question.kind,
            "risk": item.call.get("risk", "medium"),
            "risk_reason": item.call.get("risk_reason", ""),
        }
        for item in result.questions
    )
    return TurnEnded(
        result.status,
        result.answer,
        result.checkpoint_id,
        dict(result.usage),
        result.error,
        questions,
        result.turn_id,
    )
