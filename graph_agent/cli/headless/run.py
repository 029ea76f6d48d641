"""One turn without a person: settle what is open, send the prompt, say how it ended.

The answer goes to stdout and news to stderr; nothing here needs a terminal.

Answers what is open by the flags of a headless run. Decides nothing the flags do not say.

Compacts a thread by command, and tells how far it went.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.cli.chat.conversation import Conversation, Opener
from graph_agent.cli.errors import exit_code_of
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.headless.report import (
    ProgressReporter,
    failure_report,
    pending_lines,
    read_pending_work,
    result_report,
    resume_lines,
    shared_call_ids,
)
from graph_agent.cli.render.escape import escape
from graph_agent.cli.resume_point import find_resume_point
from graph_agent.cli.session_target import Target, open_target
from graph_agent.cli.startup import log_debug_traceback, reserve_stdout
from graph_agent.cli.supervisor import SupervisedResult, run_supervised, run_until_signal
from graph_agent.cli.views.format import format_compaction
from graph_agent.cli.views.table import print_json, print_lines
from graph_agent.errors import AgentError, AnswerRefused, UnknownId, UsageError
from graph_agent.events import (
    Compacted,
    Event,
    EventBus,
    SessionOpened,
    ShellContinued,
    ShellEnded,
    StepStarted,
    TurnStarted,
    WarningIssued,
    event_to_json,
)
from graph_agent.events.live_calls import LiveCalls
from graph_agent.ports import AnswerKind
from graph_agent.session.turn_result import OpenQuestion, TurnResult

__all__ = [
    "OutputFormat",
    "PendingAnswers",
    "RecoverPolicy",
    "RunRequest",
    "answer_pending",
    "compact",
    "run_headless",
]

RecoverPolicy = Literal["ask", "retry-safe", "cancel"]


class _Reply(NamedTuple):
    kind: AnswerKind
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """What the flags say about open questions."""

    approve: tuple[str, ...] = ()
    """Call ids, unique endings of them, or `all`: every approval open at the start."""
    reject: tuple[str, ...] = ()
    """The same; a call that is named goes before an `all`."""
    reason: str = ""
    recover: RecoverPolicy = "ask"

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


async def answer_pending(session: Conversation, rest: TurnResult, by: PendingAnswers) -> TurnResult:
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


def _replies(questions: Sequence[OpenQuestion], by: PendingAnswers) -> dict[str, _Reply]:
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
        replies = {
            item.question.call_id: _Reply("approve") for item in asked if not item.call.get("requires_input")
        }
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


def _recovery(item: OpenQuestion, way: RecoverPolicy) -> _Reply | None:
    if way == "cancel":
        return _Reply("cancel")
    if way == "ask":
        return None
    if item.finding_verdict == "already_applied":
        return _Reply("done", item.finding)
    is_safe = item.question.reason == "never_started" and not item.processes
    return _Reply("retry") if is_safe else None


OutputFormat = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a headless run is to do."""

    prompt: str | None
    """None: only go on with what is there."""
    output: OutputFormat = "text"
    settlement: PendingAnswers = field(default_factory=PendingAnswers)
    timeout_seconds: float | None = None
    thread_id: str | None = None
    """The thread as it was named, for reports of a run that could not open it."""
    database: Path | None = None
    """Where to look what a run that was cut short has left open."""


def run_headless(order: RunRequest, opener: Opener, listens: Callable[[], None] = lambda: None) -> int:
    """Run to the end; returns the exit code. `listens` is told when signals are about to be heard by the run."""

    async def run() -> int:
        listens()
        return await _Run(order, opener).run()

    return asyncio.run(run())


class _Run:
    def __init__(self, order: RunRequest, opener: Opener) -> None:
        self._order = order
        self._opener = opener
        self._bus = EventBus(begins_with="started")
        self._news = ProgressReporter()
        self._write = reserve_stdout()
        self._calls = LiveCalls()
        self._thread_id = order.thread_id
        self._has_checkpoint = False
        self._steps = 0
        self._last_number = 0
        self._bus.subscribe(self._take)
        match order.output:
            case "text":
                self._bus.subscribe(self._news)
            case "json":
                self._bus.subscribe(self._tell_beside)

    async def run(self) -> int:
        try:
            opened = await run_until_signal(self._open())
        except AgentError as failure:
            return self._failed(failure)
        if opened.code is not None or opened.result is None:
            if opened.result is not None:
                await opened.result.close()
            return self._suspended(opened.code or ExitCode.FAILED)
        return await self._worked(opened.result)

    async def _open(self) -> Conversation:
        return await self._opener(self._bus)

    async def _worked(self, session: Conversation) -> int:
        self._thread_id = session.thread_id
        try:
            cut = await run_supervised(session, self._work(session), timeout_seconds=self._order.timeout_seconds)
        except AgentError as failure:
            return self._failed(failure)
        finally:
            await session.close()
        return self._ended(cut)

    async def _work(self, session: Conversation) -> TurnResult:
        rest = await answer_pending(session, await session.start(), self._order.settlement)
        prompt = self._order.prompt
        if rest.questions:
            return await self._kept(session, rest)
        is_over = bool(self._steps)
        if prompt is None and rest.status == "resumable":
            rest, is_over = await session.continue_turn(), True
        if prompt is None and is_over and rest.status != "done":
            return rest
        while (sent := await session.send_queued()) is not None:
            if sent.status != "done":
                return await self._kept(session, sent)
            rest, is_over = sent, True
        if prompt is not None:
            return await session.send(prompt)
        return rest if is_over else await session.continue_turn()

    async def _kept(self, session: Conversation, rest: TurnResult) -> TurnResult:
        """The rest of a run that cannot send its prompt yet: it waits in the inbox."""
        if self._order.prompt is not None:
            await session.queue(self._order.prompt)
            self._news.tell("graph-agent: the prompt is kept and sent once what is open has been settled")
        return rest

    def _ended(self, cut: SupervisedResult[TurnResult]) -> int:
        rest = cut.result
        if rest is None or cut.code not in (None, ExitCode.INTERRUPTED):
            return self._suspended(cut.code or ExitCode.FAILED)
        code = cut.code or exit_code_of(rest)
        shared = shared_call_ids(self._order.database) if rest.questions else frozenset()
        self._print(result_report(rest, shared), rest.answer)
        if self._order.output == "text":
            self._explain(rest, shared)
        self._has_checkpoint = bool(rest.checkpoint_id)
        if code is not ExitCode.DONE:
            self._tell_resume()
        return code

    def _explain(self, rest: TurnResult, shared: frozenset[str]) -> None:
        for line in pending_lines(rest, shared):
            self._news.tell(line)
        if error := rest.error or rest.unmet:
            self._news.tell(f"graph-agent: {error}")

    def _suspended(self, code: ExitCode) -> int:
        """Ended by a signal or the time limit, with the rest left to a later life."""
        limit = self._order.timeout_seconds
        is_limit = code is ExitCode.LIMIT
        error = f"the time limit of {limit:g} s was reached" if is_limit and limit else "ended by a signal"
        self._news.tell(f"graph-agent: {error}")
        left = read_pending_work(self._order.database, self._thread_id)
        self._has_checkpoint = self._has_checkpoint or left.checkpoint_id is not None
        self._print(failure_report("limit" if is_limit else "stopped", error, self._thread_id, left), "")
        self._tell_resume()
        return code

    def _failed(self, failure: AgentError) -> int:
        self._bus.release()
        status = {ExitCode.MODEL: "model_error", ExitCode.HELD: "held"}.get(ExitCode(failure.exit_code), "failed")
        self._news.tell(f"graph-agent: {failure}")
        if told := log_debug_traceback(failure):
            self._news.tell(told)
        self._print(failure_report(status, str(failure), self._thread_id), "")
        self._tell_resume()
        return failure.exit_code

    def _tell_resume(self) -> None:
        """Only where there is something to go on from."""
        if self._thread_id and self._has_checkpoint:
            for line in resume_lines(self._thread_id):
                self._news.tell(line)

    def _print(self, report: Mapping[str, Any], answer: str) -> None:
        match self._order.output:
            case "text":
                if answer:
                    self._write(f"{escape(answer, multiline=True)}\n")
            case "json":
                self._print_line(report)
            case "stream-json":
                self._print_line({"seq": self._last_number + 1, "type": "result", **report})

    def _take(self, number: int, event: Event) -> None:
        self._last_number = number
        self._steps += isinstance(event, StepStarted)
        if isinstance(event, TurnStarted) or (isinstance(event, SessionOpened) and event.checkpoint_id):
            self._has_checkpoint = True
        if self._order.output == "stream-json":
            call = self._calls.take(event)
            state = {} if call is None else {"state": call.state}
            self._print_line({"seq": number, **event_to_json(event), **state})

    def _tell_beside(self, number: int, event: Event) -> None:
        """What is to be noted, and what goes on in the background, is no part of the one object that is printed."""
        if isinstance(event, ShellEnded | ShellContinued | WarningIssued):
            self._news(number, event)

    def _print_line(self, values: Mapping[str, Any]) -> None:
        self._write(f"{json.dumps(values, ensure_ascii=False)}\n")


async def compact(text: str, db: str | None, *, as_json: bool) -> None:
    """Compact the thread that the text means.

    Raises:
        UnknownId: nothing fits, or several threads do.
        UsageError: the thread is not at rest.
        ThreadHeld: another process has it.
    """
    found = find_resume_point(text, db, Path.cwd())
    if found.checkpoint_id is not None:
        raise UsageError(
            f"{text!r} is an older checkpoint of thread {found.thread_id}; compact takes the thread itself"
        )
    told: list[Compacted] = []

    def note(number: int, event: Event) -> None:  # noqa: ARG001 - the shape of a subscriber
        if isinstance(event, Compacted):
            told.append(event)

    bus = EventBus()
    bus.subscribe(note)
    # A model that is not clear is in the way of nothing here: an outline takes the place of its summary.
    flags = {"may_choose_model": True} | ({} if db is None else {"db": db})
    session = await open_target(Target(found.workspace, found.thread_id, exists=True, flags=flags), bus)
    try:
        await session.compact()
    finally:
        await session.close()
    if as_json:
        print_json({"thread_id": found.thread_id, "compacted": asdict(told[0]) if told else None})
    else:
        print_lines(
            [format_compaction(told[0]) if told else "nothing was compacted: the conversation is short already"]
        )
