"""What a reader shows that may not write: the status the next life would give a call, and what a thread waits for.

Pure: records, journal rows and liveness in, statuses out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graph_agent.calls import FINAL

__all__ = ["Attempt", "CallView", "StandingAnswer", "ThreadStatus", "effective_record", "thread_status"]

ThreadStatus = Literal["interrupted", "awaiting_approval", "running", "broken_off", "at_rest"]
"""In order of precedence. broken_off: work is left and nobody works on it; the next life goes on unasked."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One journal row of a call."""

    number: int
    status: str
    ended_at: str | None
    outcome: Mapping[str, Any] | None
    """Set when finished: `{status, output, error, ...}`."""
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """The answer to a question that counts, applied by the graph or not yet."""

    kind: str
    reason: str
    by: str
    at: str
    applied_at: str | None


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as it is shown."""

    thread_id: str
    record: Mapping[str, Any]
    """The `ToolCallInfo` with its effective status; `stored_status` where the stored one differs."""
    answer: StandingAnswer | None = None
    """Of the question that the call waits with, or waited with last."""

    @property
    def is_waiting(self) -> bool:
        """Whether an approval is asked for and nobody has answered."""
        return self.record["status"] == "awaiting_approval" and self.answer is None

    @property
    def is_interrupted(self) -> bool:
        """Whether a recovery decision is asked for and nobody has made it."""
        return self.record["status"] == "interrupted" and self.answer is None and not self.goes_on

    @property
    def goes_on(self) -> bool:
        """Whether the next life goes on with it unasked: a sub-agent does its work, and asks for itself."""
        return self.record["status"] == "interrupted" and bool(self.record.get("goes_on"))

    @property
    def is_answered(self) -> bool:
        """Whether its question has an answer that its thread has not taken in yet."""
        return self.record["status"] in ("awaiting_approval", "interrupted") and self.answer is not None


def effective_record(record: Mapping[str, Any], attempts: Sequence[Attempt], *, is_held: bool) -> dict[str, Any]:
    """The record as the next life would find it; `attempts` without those undone by a rewind.

    A finished attempt decides, whatever the record says: the process died before it could note the result. Without
    a living holder, a call that was marked, or approved and not yet marked, is interrupted.
    """
    status = record["status"]
    if status in FINAL:
        return dict(record)
    finished = [attempt for attempt in attempts if attempt.status in ("success", "error")]
    if finished:
        return {**record, **_recorded(finished[-1]), "stored_status": status}
    is_let_through = status == "pending" and bool(record.get("approved_at"))
    if is_held or not (status == "executing" or is_let_through):
        return dict(record)
    begun = [attempt for attempt in attempts if attempt.status != "not_started"]
    may_have_begun = bool(begun)
    return {
        **record,
        **(_started(begun[-1]) if begun else {}),
        "status": "interrupted",
        "reason": "outcome_unknown" if may_have_begun else "never_started",
        "begun": may_have_begun or bool(record.get("begun")),
        "stored_status": status,
    }


def thread_status(
    calls: Iterable[CallView], *, is_at_rest: bool, is_held: bool, asks: bool = False
) -> ThreadStatus:
    """What a thread is doing or waits for, from its open calls; `asks` where the graph itself put a question."""
    if is_at_rest:
        return "at_rest"
    views = list(calls)
    if any(view.is_interrupted for view in views):
        return "interrupted"
    if any(view.is_waiting for view in views) or (asks and not views):
        return "awaiting_approval"
    if is_held:
        return "running"
    # Every question left has its answer: the thread waits for the next life to take it in.
    if any(view.record["status"] == "interrupted" and not view.goes_on for view in views):
        return "interrupted"
    return "awaiting_approval" if any(view.is_answered for view in views) else "broken_off"


def _started(attempt: Attempt) -> dict[str, Any]:
    return {"started_at": attempt.started_at} if attempt.started_at else {}


def _recorded(attempt: Attempt) -> dict[str, Any]:
    outcome = attempt.outcome or {}
    return {
        **_started(attempt),
        "status": attempt.status,
        "result": outcome.get("output"),
        "error_msg": outcome.get("error"),
        "ended_at": attempt.ended_at,
        "begun": True,
    }
