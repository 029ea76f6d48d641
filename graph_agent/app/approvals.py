"""Answer an approval from any process, or revoke a permission.

The graph does not run here: the process that holds the thread applies the answer, or the next one that opens it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graph_agent.app.reader import read_database
from graph_agent.calls import args_digest
from graph_agent.errors import AnswerRefused, UnknownId
from graph_agent.inspect import CallView, Reader, StandingAnswer, Target
from graph_agent.ports import Answer, Clock, Grant, Question, SystemClock
from graph_agent.session.answer_checks import require_valid_answer
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants

__all__ = ["RecordedAnswer", "answer_approval", "record_answer", "revoke_grant"]


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer that stands now."""

    call_id: str
    thread_id: str
    kind: str
    accepted: bool
    """Whether it is the one just given; else somebody else was first."""
    by: str
    at: str


async def answer_approval(
    database: Path,
    text: str,
    kind: Literal["approve", "answer", "reject"],
    *,
    by: str,
    reason: str = "",
    clock: Clock | None = None,
) -> RecordedAnswer:
    """Approve, answer or refuse the call that an id, a part of one or THREAD:CALL names. See `record_answer`."""
    return await record_answer(database, text, Answer(kind, by, (clock or SystemClock()).now(), reason=reason))


async def record_answer(database: Path, text: str, answer: Answer) -> RecordedAnswer:
    """Record an answer to the question about the call that the text names. The first answer wins.

    The arguments of an edit are taken as they are: `edit_approval` judges them first.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call and nobody has answered; or it waits for another kind of answer.
    """
    with read_database(database) as reader:
        asked = reader.approvals()
        view = _only_waiting(asked, text)
        if view is None:
            target = reader.resolve(text, kinds=("call",))
            view = next((view for view in asked if _is_about(view, target)), None)
            if view is None or not view.is_waiting:
                return _too_late(reader, target)
    require_valid_answer(view.record, answer.kind)
    async with await Database.open(database) as opened:
        standing = await SqliteDecisions(opened).insert(view.thread_id, _question(view), answer)
    return _answered(view, standing, accepted=standing == answer)


def _only_waiting(asked: list[CallView], call_id: str) -> CallView | None:
    """The one call with this very id that waits: a server that counts its calls gives many threads the same ids."""
    waiting = [view for view in asked if view.is_waiting and view.record["call_id"] == call_id]
    return waiting[0] if len(waiting) == 1 else None


def _is_about(view: CallView, target: Target) -> bool:
    return (view.thread_id, view.record["call_id"]) == (target.thread_id, target.id)


def _question(view: CallView) -> Question:
    call = view.record
    call_id, attempt = call["call_id"], call.get("attempt", 1)
    digest = call.get("args_digest") or args_digest(call_id, call["tool_name"], attempt, call["arguments"])
    return Question("approval", call_id, attempt, digest, call.get("reason", ""))


def _too_late(reader: Reader, target: Target) -> RecordedAnswer:
    view = reader.call(target.thread_id, target.id)
    earlier = reader.approval_answer(target.thread_id, target.id)
    if earlier is not None:
        return _answered(view, earlier, accepted=False)
    status = view.record["status"]
    advice = "`graph-agent approvals list` shows the calls that do"
    if status == "awaiting_approval" or view.record.get("abandoned"):
        status = "left behind on an earlier branch"
    elif status == "interrupted":
        advice = f"`graph-agent recover {view.thread_id}` decides how to go on with it"
    raise AnswerRefused(f"call {target.id!r} does not wait for an approval, it is {status}; {advice}.")


def _answered(view: CallView, standing: Answer | StandingAnswer, *, accepted: bool) -> RecordedAnswer:
    return RecordedAnswer(view.record["call_id"], view.thread_id, standing.kind, accepted, standing.by, standing.at)


async def revoke_grant(database: Path, text: str, *, by: str, clock: Clock | None = None) -> Grant:
    """Revoke the grant with this id.

    Raises:
        UnknownId: no such grant stands; nothing is created or changed.
    """
    with read_database(database) as reader:
        standing = {str(grant.id): grant for grant in reader.grants()}
    named = standing.get(text.strip())
    if named is not None:
        async with await Database.open(database) as opened:
            revoked = await SqliteGrants(opened).revoke(named.id, by, (clock or SystemClock()).now())
        if revoked is not None:
            return revoked
    choice = f"these stand: {', '.join(standing)}" if standing else "none stands"
    raise UnknownId(f"there is no grant {text!r} (any more), {choice}; `graph-agent policy list` shows them")
