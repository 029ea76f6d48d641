"""Answers to pending questions: the flags --approve, --reject and --recover of `run`, and lines on its stdin."""

import asyncio
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from graph_agent.config.paths import own_command
from graph_agent.errors import AnswerRefused, UnknownId, UsageError
from graph_agent.events import AnswerKind, WarningIssued
from graph_agent.ports import Answer, SystemClock
from graph_agent.session.turn_result import OpenQuestion, TurnResult

if TYPE_CHECKING:
    from graph_agent.app.approvals import RecordedAnswer
    from graph_agent.inspect import CallView
    from graph_agent.session.session import Session

__all__ = [
    "InputLines",
    "InvalidLine",
    "PendingAnswers",
    "RecoverPolicy",
    "UserAnswer",
    "UserLine",
    "answer_pending",
    "give_answer",
]

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

    @property
    def names_calls(self) -> bool:
        """Whether any call is to be approved or rejected."""
        return bool(self.approve or self.reject)

    def require_pending_calls(self, *, may_exist: bool) -> None:
        """Refuse answers that make no sense.

        Raises:
            UsageError: all are approved and rejected; or the thread is new and has no pending calls.
        """
        if "all" in self.approve and "all" in self.reject:
            raise UsageError("--approve all and --reject all exclude each other. Use one of them.")
        if self.names_calls and not may_exist:
            raise UsageError(
                "--approve and --reject answer pending calls, and a new thread has none. "
                f"Name the thread with --resume ID; `{own_command()} approvals list` lists pending calls."
            )


async def answer_pending(
    session: "Session", result: TurnResult, answers: PendingAnswers, database: Path | None = None
) -> TurnResult:
    """Answer the pending questions that the flags name and continue when nothing stays pending.

    With a database, those of sub-agents are reached too that the parent has not opened yet.

    Raises:
        UsageError: a flag names a call that is not pending here, or two flags name the same one.
        AnswerRefused: another process gave a different answer first.
    """
    from graph_agent.app.approvals import pending_sub_agent_calls, record_answer  # most runs have no questions

    shown = {item.question.call_id for item in result.questions}
    below: list[CallView] = []
    if database and result.questions and answers.names_calls:
        waiting = pending_sub_agent_calls(database, session.thread_id)
        below = [view for view in waiting if view.record["call_id"] not in shown]
    replies = _replies(result.questions, answers, below)
    if "all" in answers.approve and "approve" not in {kind for kind, _ in replies.values()}:
        session.bus.publish(WarningIssued("--approve all approves nothing: no call waits for an approval here."))
    for item in result.questions:
        if reply := replies.get(item.question.call_id):
            kind, reason = reply
            await session.decide(item.question, kind, reason=reason)
    for view in below:
        call_id = view.record["call_id"]
        if database and (reply := replies.get(call_id)):
            kind, reason = reply
            answer = Answer(kind, session.by, SystemClock().now(), reason=reason)
            recorded = await record_answer(database, f"{view.thread_id}:{call_id}", answer)
            if not recorded.accepted:
                _require_same_kind(call_id, kind, recorded)
    return await session.proceed() if result.questions else result


def _require_same_kind(call_id: str, kind: str, given: "RecordedAnswer") -> None:
    if given.kind != kind:
        raise AnswerRefused(
            f"Call {call_id!r} already has an answer: {given.kind} by {given.by} at {given.at}. "
            "The first answer counts."
        )


def _replies(
    questions: Sequence[OpenQuestion], answers: PendingAnswers, below: "Sequence[CallView]"
) -> dict[str, _Reply]:
    approvals = {item.question.call_id: item.call for item in questions if item.question.kind == "approval"} | {
        view.record["call_id"]: view.record for view in below
    }
    pending = list(approvals)
    rejected = {_find_call(name, pending) for name in answers.reject if name != "all"}
    approved = {_find_call(name, pending) for name in answers.approve if name != "all"}
    if both := rejected & approved:
        raise UsageError(f"Call {min(both)!r} is both approved and rejected. Use one of the flags.")
    if "all" in answers.reject:
        rejected |= set(pending) - approved
    elif "all" in answers.approve:
        # A question of the model needs an answer in words: approving cannot give it.
        answerable = {call_id for call_id, call in approvals.items() if not call.get("requires_input")}
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
        f"List those of all threads with `{own_command()} approvals list`."
    )


_MAX_LINE = 10 * 1024 * 1024


_ONLY_THESE_FIELDS = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class UserLine:
    """A message for the model."""

    __pydantic_config__ = _ONLY_THESE_FIELDS

    type: Literal["user"]
    text: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class UserAnswer:
    """An answer to an open question."""

    __pydantic_config__ = _ONLY_THESE_FIELDS

    type: Literal["answer"]
    call_id: str
    kind: Literal["approve", "edit", "reject", "answer", "retry", "done", "cancel"]
    reason: str = ""
    """For the model: the text of an answer, or the result of a call marked as done."""
    arguments: dict[str, Any] | None = None
    """For an edit."""


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line that is neither."""

    number: int
    error: str

    def as_json(self) -> Mapping[str, Any]:
        """The object that is printed."""
        return {"type": "input_error", "line": self.number, "error": self.error}


@cache
def _parser() -> TypeAdapter[UserLine | UserAnswer]:
    return TypeAdapter(Annotated[UserLine | UserAnswer, Field(discriminator="type")])


@dataclass
class InputLines:
    """The lines of stdin, read by a thread that the end of the process does not wait for."""

    stream: BinaryIO = field(default_factory=lambda: sys.stdin.buffer)
    _queue: "asyncio.Queue[bytes]" = field(default_factory=lambda: asyncio.Queue(1), init=False)
    number: int = field(default=0, init=False)
    """Of the last line."""
    _is_reading: bool = field(default=False, init=False)

    async def next(self) -> UserLine | UserAnswer | InvalidLine | None:
        """The next line that is not blank; None at the end."""
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        while line := await self._queue.get():
            self.number += 1
            if line.strip():
                return self._parse(line)
        self._queue.put_nowait(b"")  # Later calls return the end again.
        return None

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line = b"\n"
        while line:
            try:
                line = self.stream.readline(_MAX_LINE + 1)
                while len(line) > _MAX_LINE and not line.endswith(b"\n") and self.stream.readline(_MAX_LINE):
                    pass
                asyncio.run_coroutine_threadsafe(self._queue.put(line), loop).result()
            except (OSError, ValueError, RuntimeError, asyncio.CancelledError):
                return  # The process is ending.

    def _parse(self, line: bytes) -> UserLine | UserAnswer | InvalidLine:
        if len(line) > _MAX_LINE:
            return InvalidLine(self.number, f"the line is longer than {_MAX_LINE // 1024 // 1024} MB")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            return InvalidLine(self.number, f"it is not JSON: {error}")
        try:
            return _parser().validate_python(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"][1:])
            return InvalidLine(self.number, f"{place}: {first['msg']}" if place else first["msg"])


async def give_answer(session: "Session", open_now: TurnResult, given: UserAnswer) -> TurnResult:
    """Record an answer, and continue once no question is left.

    Raises:
        UnknownId: no open question has this call id.
        AnswerRefused: the answer does not fit the question.
    """
    wanted = given.call_id.rpartition(":")[2]
    for item in open_now.questions:
        if item.question.call_id == wanted:
            await session.decide(item.question, given.kind, arguments=given.arguments, reason=given.reason)
            return await session.proceed()
    waiting = ", ".join(item.question.call_id for item in open_now.questions) or "none"
    raise UnknownId(f"No question about {given.call_id!r} is open. Open: {waiting}.")
