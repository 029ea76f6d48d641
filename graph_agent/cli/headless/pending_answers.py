"""Answer pending questions by the flags of `run`: --approve, --reject and --recover."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graph_agent.errors import AnswerRefused, UnknownId, UsageError
from graph_agent.events import AnswerKind
from graph_agent.session.turn_result import OpenQuestion, TurnResult

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["PendingAnswers", "RecoverPolicy", "answer_pending"]

RecoverPolicy = Literal["ask", "retry-safe", "cancel"]
_SHORTEST_ID = 4
_Reply = tuple[AnswerKind, str]
"""An answer and its reason."""


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """What the flags say about pending questions."""

    approve: tuple[str, ...] = ()
    """Call ids, unique parts of them, or `all`: every approval that is pending at the start."""
    reject: tuple[str, ...] = ()
    """The same; a call that is named takes precedence over `all`."""
    reason: str = ""
    recover: RecoverPolicy = "ask"

    def require_pending_calls(self, *, may_exist: bool) -> None:
        """Refuse answers that make no sense.

        Raises:
            UsageError: all are approved and rejected; or the thread is new and has no pending calls.
        """
        if "all" in self.approve and "all" in self.reject:
            raise UsageError("--approve all and --reject all exclude each other. Use one of them.")
        if (self.approve or self.reject) and not may_exist:
            raise UsageError(
                "--approve and --reject answer pending calls, and a new thread has none. "
                "Name the thread with --resume ID; `graph-agent approvals list` lists pending calls."
            )


async def answer_pending(session: "Session", result: TurnResult, answers: PendingAnswers) -> TurnResult:
    """Answer the pending questions that the flags name and continue when nothing stays pending.

    Raises:
        UsageError: a flag names a call that is not pending here, or two flags name the same one.
        AnswerRefused: another process gave a different answer first.
    """
    replies = _replies(result.questions, answers)
    for item in result.questions:
        if reply := replies.get(item.question.call_id):
            kind, reason = reply
            answer = await session.decide(item.question, kind, reason=reason)
            if answer.by != session.by and answer.kind != kind:
                raise AnswerRefused(
                    f"Call {item.question.call_id!r} already has an answer: {answer.kind} by {answer.by} "
                    f"at {answer.at}. The first answer counts."
                )
    return await session.proceed() if result.questions else result


def _replies(questions: Sequence[OpenQuestion], answers: PendingAnswers) -> dict[str, _Reply]:
    approvals = [item for item in questions if item.question.kind == "approval"]
    pending = [item.question.call_id for item in approvals]
    rejected = {_find_call(name, pending) for name in answers.reject if name != "all"}
    approved = {_find_call(name, pending) for name in answers.approve if name != "all"}
    if both := rejected & approved:
        raise UsageError(f"Call {min(both)!r} is both approved and rejected. Use one of the flags.")
    if "all" in answers.reject:
        rejected |= set(pending) - approved
    elif "all" in answers.approve:
        # A question of the model needs an answer in words: approving cannot give it.
        answerable = {item.question.call_id for item in approvals if not item.call.get("requires_input")}
        approved |= answerable - rejected
    replies: dict[str, _Reply] = dict.fromkeys(approved, ("approve", ""))
    replies |= dict.fromkeys(rejected, ("reject", answers.reason))
    for item in questions:
        if item.question.kind != "recovery" or answers.recover == "ask":
            continue
        if answers.recover == "cancel":
            replies[item.question.call_id] = ("cancel", "")
        elif item.finding_verdict == "already_applied":
            replies[item.question.call_id] = ("done", item.finding)
        elif item.question.reason == "never_started" and not item.processes:
            replies[item.question.call_id] = ("retry", "")
    return replies


def _find_call(name: str, pending: list[str]) -> str:
    wanted = name.rpartition(":")[2]
    if wanted in pending:
        return wanted
    is_long = len(wanted) >= _SHORTEST_ID
    matches = [one for one in pending if is_long and (one.startswith(wanted) or one.endswith(wanted))]
    if len(matches) == 1:
        return matches[0]
    choice = ", ".join(matches or pending) or "none"
    raise UnknownId(
        f"{name!r} matches {'several calls' if matches else 'no call'} waiting for approval here: {choice}. "
        "List those of all threads with `graph-agent approvals list`."
    )
