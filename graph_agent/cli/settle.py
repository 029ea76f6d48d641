"""Answers what is open by the flags of a headless run. Decides nothing the flags do not say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from graph_agent.cli.conversation import Conversation
from graph_agent.errors import AnswerRefused, UnknownId, UsageError
from graph_agent.ports import AnswerKind
from graph_agent.session.api import OpenQuestion, Rest

__all__ = ["RecoverWay", "Settlement", "settle"]

RecoverWay = Literal["ask", "retry-safe", "cancel"]


class _Reply(NamedTuple):
    kind: AnswerKind
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What the flags say about open questions."""

    approve: tuple[str, ...] = ()
    """Call ids, unique endings of them, or `all`: every approval open at the start."""
    reject: tuple[str, ...] = ()
    """The same; a call that is named goes before an `all`."""
    reason: str = ""
    recover: RecoverWay = "ask"

    @property
    def names(self) -> tuple[str, ...]:
        """The calls that are named one by one."""
        return tuple(name for name in (*self.approve, *self.reject) if name != "all")

    def require_open_calls(self, *, may_be: bool) -> None:
        """Refuse answers that make no sense: two for all, or any about a thread that can have no open call.

        Raises:
            UsageError: all are approved and rejected; or the thread is new: a later call would wait all the same.
        """
        if "all" in self.approve and "all" in self.reject:
            raise UsageError("--approve all and --reject all exclude each other; leave one of them out")
        if (self.approve or self.reject) and not may_be:
            raise UsageError(
                "--approve and --reject answer calls that wait already, and a new thread has none; "
                "name the thread with --resume ID (`graph-agent approvals list` shows what waits)"
            )


async def settle(session: Conversation, rest: Rest, by: Settlement) -> Rest:
    """Answer the open questions that the flags speak of and run on when nothing stays open.

    Raises:
        UsageError: a flag names a call that is not open here, or speaks twice about one.
    """
    replies = _replies(rest.questions, by)
    for item in rest.questions:
        if reply := replies.get(item.question.call_id):
            await _decide(session, item, reply)
    if not rest.questions:
        return rest
    return await session.proceed()


async def _decide(session: Conversation, item: OpenQuestion, reply: _Reply) -> None:
    answer = await session.decide(item.question, reply.kind, reason=reply.reason)
    if answer.by != session.by and answer.kind != reply.kind:
        raise AnswerRefused(
            f"call {item.question.call_id!r} was answered before: {answer.kind} by {answer.by} at {answer.at}; "
            "that answer stands"
        )


def _replies(questions: Sequence[OpenQuestion], by: Settlement) -> dict[str, _Reply]:
    asked = [item for item in questions if item.question.kind == "approval"]
    approvals = [item.question.call_id for item in asked]
    rejected = {_named(name, approvals) for name in by.reject if name != "all"}
    approved = {_named(name, approvals) for name in by.approve if name != "all"}
    if twice := rejected & approved:
        raise UsageError(f"call {min(twice)!r} is both approved and rejected; leave one of the flags out")
    replies: dict[str, _Reply] = {}
    if "all" in by.reject:
        replies = dict.fromkeys(approvals, _Reply("reject", by.reason))
    elif "all" in by.approve:
        # Nobody can answer a question of the model's by approving it: it stays open.
        replies = {item.question.call_id: _Reply("approve") for item in asked if not item.call.get("wants_answer")}
    replies |= dict.fromkeys(approved, _Reply("approve")) | dict.fromkeys(rejected, _Reply("reject", by.reason))
    for item in questions:
        if item.question.kind == "recovery" and (reply := _recovery(item, by.recover)):
            replies[item.question.call_id] = reply
    return replies


def _named(name: str, open_ids: list[str]) -> str:
    wanted = name.rpartition(":")[2]
    if wanted in open_ids:
        return wanted
    matches = [one for one in open_ids if len(wanted) >= 4 and (one.startswith(wanted) or one.endswith(wanted))]
    if len(matches) == 1:
        return matches[0]
    choice = ", ".join(matches or open_ids) or "none"
    raise UnknownId(
        f"{name!r} names {'several calls' if matches else 'no call'} waiting for approval here: {choice}; "
        "`graph-agent approvals list` shows those of all threads"
    )


def _recovery(item: OpenQuestion, way: RecoverWay) -> _Reply | None:
    if way == "cancel":
        return _Reply("cancel")
    if way == "ask":
        return None
    if item.finding_verdict == "already_applied":
        return _Reply("done", item.finding)
    is_safe = item.question.reason == "never_started" and not item.processes
    return _Reply("retry") if is_safe else None
