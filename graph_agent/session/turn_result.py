"""What a session returns and takes: the shapes the command line and embedders program against."""

from dataclasses import dataclass, field
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.events import TurnStatus
from graph_agent.ports import Question

__all__ = ["OpenQuestion", "TurnResult", "TurnStatus"]


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question with the record it is about and what is known for deciding it."""

    question: Question
    call: ToolCallInfo
    partial_output: str = ""
    """Recovery: what a shell command wrote until it was broken off (its end, bounded)."""
    finding: str = ""
    """Recovery: what the reconciler found, in words; empty when it cannot tell."""
    finding_verdict: str = ""
    """already_applied, not_applied, something_else, unknown; empty for approvals."""
    processes: tuple[int, ...] = ()
    """Recovery: pids of what the command left running when it was broken off; while there are any, no retry."""
    thread_id: str = ""
    """The thread of the call, where that is a sub-agent's."""
    sub_agent: str = ""
    """What the sub-agent does that asks, in a few words; empty where it is the thread itself that asks."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """Where a run came to rest, and what it waits for."""

    status: TurnStatus
    thread_id: str
    checkpoint_id: str
    answer: str = ""
    """Text of the last model message of the turn."""
    unmet: str = ""
    """Why what was asked was not done, where the model knows that for certain; never of a language model."""
    questions: tuple[OpenQuestion, ...] = ()
    """Open questions without a standing answer, in the model's order."""
    usage: dict[str, Any] = field(default_factory=dict)
    """What the requests of the turn used, as `told_usage` tells it."""
    thread_usage: dict[str, Any] = field(default_factory=dict)
    """The same of the whole thread."""
    error: str | None = None
    budget: str = ""
    """At a limit: the setting whose budget is used up; empty where the model did not get on."""
    is_shared: bool = False
    """Of a sub-agent at a limit: whether that is its parent's, which rests as well."""
