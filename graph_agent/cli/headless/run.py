"""Run one turn without a person: answer what is pending by the flags, send the prompt, report how it ended.

The answer goes to stdout, progress to stderr. If a program writes to stdin, further turns follow, each reported.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

from graph_agent.cli.exit_codes import ExitCode, exit_code_of
from graph_agent.cli.headless.pending_answers import (
    InputLines,
    InvalidLine,
    PendingAnswers,
    UserAnswer,
    UserLine,
    answer_pending,
    give_answer,
)
from graph_agent.cli.headless.report import (
    AnswerSchema,
    ProgressReporter,
    StructuredAnswer,
    failure_report,
    pending_lines,
    result_report,
    resume_lines,
    shared_call_ids,
)
from graph_agent.cli.log_file import log_debug_traceback
from graph_agent.cli.session_target import Opener, Target, find_resume_point, open_target
from graph_agent.cli.startup import reserve_stdout
from graph_agent.cli.supervisor import SupervisedResult, run_supervised, run_until_signal
from graph_agent.config.paths import own_command, runnable_hints
from graph_agent.errors import AgentError, UsageError
from graph_agent.events import (
    Compacted,
    Event,
    EventBus,
    LiveCalls,
    SessionOpened,
    ShellContinued,
    ShellEnded,
    StepStarted,
    TurnStarted,
    WarningIssued,
    event_to_json,
)
from graph_agent.session.turn_result import TurnResult
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["OutputFormat", "RunRequest", "compact", "run_headless"]

_STILL_STOPPED = (
    "The last turn was stopped and is not continued. To continue it, run `{} run --resume {}`, or add a message."
)
OutputFormat = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a headless run is to do."""

    prompt: str | None
    """Queued when the session is opened; None: only resume the thread."""
    output: OutputFormat = "text"
    answers: PendingAnswers = field(default_factory=PendingAnswers)
    timeout_seconds: float | None = None
    thread_id: str | None = None
    """The thread as it was named, for the report of a run that could not open it."""
    database: Path | None = None
    """Where an interrupted run reads what it left pending."""
    schema: AnswerSchema | None = None
    """What the final answer of each turn has to fit."""
    reads_lines: bool = False
    """Whether messages and answers follow on stdin, one JSON object per line."""
    keeps_stopped: bool = False
    """Without a prompt, whether a turn that the user stopped stays as it is."""


def run_headless(
    request: RunRequest,
    opener: Opener,
    on_ready: Callable[[], None] = lambda: None,
    leave: Callable[[int], None] = lambda _: None,
) -> int:
    """Run to the end; returns the exit code.

    `on_ready` is called when the run is about to handle signals. `leave` may end the process with an exit code that
    is reported: modules that load in a thread would be waited for.
    """

    async def run() -> int:
        on_ready()
        started = _Run(request, opener)
        code = await started.run()
        if started.was_cut_short:
            leave(code)
        return code

    return asyncio.run(run())


class _Run:
    def __init__(self, request: RunRequest, opener: Opener) -> None:
        self._request = request
        self._opener = opener
        self._bus = EventBus(begins_with="started")
        self._progress = ProgressReporter()
        self._write = reserve_stdout()
        self._calls = LiveCalls()
        self._thread_id = request.thread_id
        self._has_checkpoint = False
        self.was_cut_short = False
        """Whether a signal ended it before there was a session."""
        self._steps = 0
        self._printed = 0
        """Lines of JSON so far."""
        self._bus.subscribe(self._on_event)

    async def run(self) -> int:
        async def open_session() -> "Session":
            return await self._opener(self._bus)

        try:
            opened = await run_until_signal(open_session())
            session = opened.result
            if opened.code is not None or session is None:
                if session is not None:
                    await session.close()
                self.was_cut_short = session is None
                return self._report_interruption(opened.code or ExitCode.FAILED)
            self._thread_id = session.thread_id
            try:
                supervised = await self._supervised(session, self._work(session))
                if self._request.reads_lines:
                    supervised = await self._take_lines(session, supervised)
            finally:
                await session.close()
        except AgentError as failure:
            return self._report_failure(failure)
        result, code = supervised.result, supervised.code
        if result is None or code not in (None, ExitCode.INTERRUPTED):
            return self._report_interruption(code or ExitCode.FAILED)
        return self._report_result(result, code or self._exit_code_of(result))

    async def _supervised(
        self, session: "Session", work: Coroutine[Any, Any, TurnResult]
    ) -> SupervisedResult[TurnResult]:
        supervised = await run_supervised(session, work, timeout_seconds=self._request.timeout_seconds)
        is_new = supervised.result is not None and (supervised.result.questions or self._steps)
        if self._request.reads_lines and is_new and supervised.result is not None:
            self._print_result(supervised.result)
        return supervised

    async def _take_lines(
        self, session: "Session", supervised: SupervisedResult[TurnResult]
    ) -> SupervisedResult[TurnResult]:
        """Turns and answers as stdin asks for them, until it ends; returns the last result."""
        lines = InputLines()
        while supervised.code is None and supervised.result is not None:
            read = await run_until_signal(lines.next())
            if read.code is not None:
                return SupervisedResult(read.code, None)
            if (line := read.result) is None:
                break
            if isinstance(line, InvalidLine):
                self._print_invalid(line)
                continue
            try:
                supervised = await self._supervised(session, self._take(session, supervised.result, line))
            except AgentError as refused:
                self._print_invalid(InvalidLine(lines.number, str(refused)))
        return supervised

    async def _take(self, session: "Session", result: TurnResult, line: UserLine | UserAnswer) -> TurnResult:
        """A message starts a turn, or waits while questions are open; an answer continues the turn."""
        if isinstance(line, UserAnswer):
            result = await give_answer(session, result, line)
        elif result.questions:
            await session.queue(line.text)
            self._progress.print("Your message is queued until the pending calls are resolved.")
            return result
        else:
            result = await self._send(session, line.text)
        while result.status == "done" and (sent := await session.send_queued()) is not None:
            result = sent
        return await self._corrected(session, result)

    async def _send(self, session: "Session", text: str) -> TurnResult:
        schema = self._request.schema
        return await session.send(text, schema.request if schema else "")

    async def _corrected(self, session: "Session", result: TurnResult) -> TurnResult:
        schema = self._request.schema
        return await schema.corrected(session, result) if schema else result

    def _exit_code_of(self, result: TurnResult) -> ExitCode:
        return ExitCode.MODEL if self._structured(result).problem else exit_code_of(result)

    def _structured(self, result: TurnResult) -> StructuredAnswer:
        schema = self._request.schema
        if schema is None or result.status != "done" or result.questions or result.unmet:
            return StructuredAnswer()
        return schema.check(result.answer)

    async def _work(self, session: "Session") -> TurnResult:
        request = self._request
        result = await answer_pending(session, await session.start(), request.answers, request.database)
        prompt = self._request.prompt
        if result.questions:
            return await self._report_queued(session, result)
        has_run = bool(self._steps)
        if prompt is None and result.status == "resumable":
            result, has_run = await session.continue_turn(), True
        if prompt is None and has_run and result.status != "done":
            return result
        schema = request.schema.request if request.schema and prompt is not None else ""
        while (sent := await session.send_queued(schema)) is not None:
            if has_run:  # The answer to an earlier message comes before the last one.
                self._print_answer(result)
            if sent.status != "done":
                return await self._report_queued(session, sent)
            result, has_run = sent, True
        if self._request.reads_lines and not has_run:
            return result
        if not has_run:
            result = await self._continue_last(session)
        return await self._corrected(session, result)

    async def _continue_last(self, session: "Session") -> TurnResult:
        keeps_stopped = self._request.keeps_stopped
        result = await session.continue_turn(keeps_stopped=keeps_stopped)
        if result.status == "stopped" and keeps_stopped:
            self._progress.print(_STILL_STOPPED.format(own_command(), session.thread_id))
        return result

    async def _report_queued(self, session: "Session", result: TurnResult) -> TurnResult:
        """Say that the prompt stays in the queue, where it has been since the session was opened."""
        if self._request.prompt is not None and await session.queued():
            self._progress.print("Your prompt is queued until the pending calls are resolved.")
        return result

    def _report_result(self, result: TurnResult, code: ExitCode) -> int:
        if not self._request.reads_lines:
            self._print_result(result)
        self._has_checkpoint = bool(result.checkpoint_id)
        if code is not ExitCode.DONE:
            self._print_resume_hint()
        return code

    def _print_result(self, result: TurnResult) -> None:
        shared = shared_call_ids(self._request.database) if result.questions else frozenset()
        report = result_report(result, shared)
        error = result.error or result.unmet
        if self._request.schema is not None:
            checked = self._structured(result)
            report["structured"] = checked.value
            if checked.problem:
                error = f"The answer does not fit the schema of --json-schema. {checked.problem}"
                report |= {"status": "model_error", "error": error}
        self._print_report(report)
        if self._request.output == "text":
            for line in pending_lines(result, shared):
                self._progress.print(line)
            if error:
                self._progress.print(f"graph-agent: {error}")

    def _print_invalid(self, line: InvalidLine) -> None:
        """A line of stdin that cannot be used; the next one is read."""
        if self._request.output == "text":
            self._progress.print(f"graph-agent: line {line.number} of the input: {line.error}")
        else:
            self._print_json(line.as_json())

    def _report_interruption(self, code: ExitCode) -> int:
        """Ended by a signal or the time limit; a later run resumes the rest."""
        limit = self._request.timeout_seconds
        is_limit = code is ExitCode.LIMIT
        error = f"the time limit of {limit:g} s was reached" if is_limit and limit else "ended by a signal"
        self._progress.print(f"graph-agent: {error}")
        status = "limit" if is_limit else "stopped"
        report = failure_report(status, error, self._thread_id, self._request.database)
        self._has_checkpoint = self._has_checkpoint or report["checkpoint_id"] is not None
        self._print_report(report)
        self._print_resume_hint()
        return code

    def _report_failure(self, failure: AgentError) -> int:
        self._bus.release()
        status = {ExitCode.MODEL: "model_error", ExitCode.HELD: "held"}.get(ExitCode(failure.exit_code), "failed")
        self._progress.print(f"graph-agent: {failure}")
        if traceback := log_debug_traceback(failure):
            self._progress.print(traceback)
        self._print_report(failure_report(status, runnable_hints(str(failure)), self._thread_id))
        self._print_resume_hint()
        return failure.exit_code

    def _print_resume_hint(self) -> None:
        if self._thread_id and self._has_checkpoint:
            for line in resume_lines(self._thread_id):
                self._progress.print(line, is_folded=False)

    def _print_report(self, report: Mapping[str, Any]) -> None:
        match self._request.output:
            case "text":
                answer = report["answer"]
                if report.get("structured") is not None:
                    answer = json.dumps(report["structured"], ensure_ascii=False)
                if answer:
                    self._write(f"{escape(answer, multiline=True)}\n")
            case "json":
                self._print_json(report)
            case "stream-json":
                self._print_json({"type": "result", **report})
            case _ as never:
                assert_never(never)

    def _on_event(self, number: int, event: Event) -> None:
        self._steps += isinstance(event, StepStarted)
        if isinstance(event, TurnStarted) or (isinstance(event, SessionOpened) and event.checkpoint_id):
            self._has_checkpoint = True
        match self._request.output:
            case "text":
                self._progress(number, event)
            case "json":
                # Notices are no part of the one object that is printed.
                if isinstance(event, ShellEnded | ShellContinued | WarningIssued):
                    self._progress(number, event)
            case "stream-json":
                call = self._calls.take(event)
                state = {} if call is None else {"state": call.state}
                self._print_json({**event_to_json(event), **state})
            case _ as never:
                assert_never(never)

    def _print_answer(self, result: TurnResult) -> None:
        if self._request.output == "text" and result.answer:
            self._write(f"{escape(result.answer, multiline=True)}\n")

    def _print_json(self, values: Mapping[str, Any]) -> None:
        if self._request.output == "stream-json":
            self._printed += 1
            values = {"seq": self._printed, **values}
        self._write(f"{json.dumps(values, ensure_ascii=False)}\n")


async def compact(text: str, db: str | None, *, as_json: bool) -> None:
    """Compact the model's context in the thread with this id.

    Raises:
        UnknownId: no thread matches, or several do.
        UsageError: the thread is not idle.
        ThreadHeld: another process holds it.
    """
    from graph_agent.cli.views.format import format_compaction
    from graph_agent.cli.views.table import print_json, print_lines

    found = find_resume_point(text, db, Path.cwd())
    if found.checkpoint_id is not None:
        raise UsageError(f"{text!r} is an older checkpoint of thread {found.thread_id}. Name the thread instead.")
    compacted: list[Compacted] = []

    def note(number: int, event: Event) -> None:  # noqa: ARG001 - the shape of a subscriber
        if isinstance(event, Compacted):
            compacted.append(event)

    bus = EventBus()
    bus.subscribe(note)
    # Compaction works without a model: an outline replaces its summary.
    flags = {"may_choose_model": True} | ({} if db is None else {"db": db})
    session = await open_target(Target(found.workspace, found.thread_id, exists=True, flags=flags), bus)
    try:
        await session.compact()
    finally:
        await session.close()
    if as_json:
        print_json({"thread_id": found.thread_id, "compacted": asdict(compacted[0]) if compacted else None})
    else:
        print_lines([format_compaction(compacted[0]) if compacted else "Nothing to compact: the context is short."])
