"""Runs the graph until the turn ends or a question needs a person, and stops it on request.

Also makes the envelope of answers that resumes a graph which waits with questions.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graph_agent.calls import FINAL, MAX_AUTOMATIC_RETRIES, ToolCallInfo
from graph_agent.errors import AgentError, LeaseLost, ModelError, StaleOwner
from graph_agent.events import WarningIssued
from graph_agent.graph.human_approval import answer_to_json, questions_in
from graph_agent.graph.run_context import RunContext, SessionContext, TakeMessages, new_owner_token
from graph_agent.ports import Answer, JournalRow, Question, Scope
from graph_agent.ports.usage import SharedBudget, UsageTotals, usage_report
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.recovery import describe_question, process_traces
from graph_agent.session.subagents import usage_with_sub_agents
from graph_agent.session.thread_graph import RunOutput, ThreadGraph, last_answer, last_unmet, turn_id_of
from graph_agent.session.time_travel import JournalFacts
from graph_agent.session.turn_result import OpenQuestion, TurnResult, TurnStatus, turn_ended
from graph_agent.toolbox.tool_context import ProcessTraces

__all__ = ["GraphRunner", "QuestionQueue", "Work", "await_or_cancel", "turn_outcome", "turn_result_of"]

_GRACE_S = 5.0
"""How long a running call may continue before it is cancelled."""

Work = Callable[[RunContext], Awaitable[RunOutput | None]]
"""Runs the graph once; None if it cannot run because a question has no answer yet."""


class GraphRunner:
    """The only place that runs the graph of a thread, one run at a time."""

    def __init__(self, thread: Thread, dependencies: SessionDependencies) -> None:
        self._thread = thread
        self._dependencies = dependencies
        self._graph = dependencies.graph
        self._questions = QuestionQueue(thread, dependencies)
        self.owner_token = new_owner_token()
        """The token of this process; a new one after each run that did not return."""
        self._task: asyncio.Task[TurnResult] | None = None
        self._result: asyncio.Future[TurnResult] | None = None
        self._last_result: TurnResult | None = None
        self._busy = asyncio.Lock()
        self._stop_requested = False
        self._has_lost_thread = False
        self._just_answered: list[Question] = []
        self._cwd = ""
        self._used_by_stopped: dict[str, Mapping[str, Any]] = {}
        """What sub-agents had used when they were stopped, by call id."""
        self._spent = UsageTotals()
        """What turn and thread have used, as far as this process knows."""
        self.open_questions: dict[str, OpenQuestion] = {}
        """By call id, as the graph last asked them."""
        self.mode = thread.mode
        self.state_mode = ""
        """The mode in the graph's state; empty before there is one."""
        self._stored_mode = thread.mode
        self.can_cancel_pending = False
        """Whether the only pending calls are those of sub-agents that failed."""
        self.journal_facts = JournalFacts()
        self.imported_calls: frozenset[str] = frozenset()
        """As in `RunContext`."""
        self.shared_budget = SharedBudget(thread.budget, thread.max_steps)
        """What the thread's sub-agents draw on, unless it is a sub-agent itself."""
        self.budget_reset = ""
        """As in `RunContext`."""
        self.take_messages: TakeMessages | None = None
        """As in `RunContext`."""
        self.response_schema: Mapping[str, Any] | None = None
        """As in `RunContext`."""

    async def store_mode(self) -> str:
        """Store the mode for later processes, and return it: bypassPermissions must be chosen again in each."""
        mode = "default" if self.mode == "bypassPermissions" else self.mode
        if (chosen := self.mode) != self._stored_mode:
            await self._dependencies.store_mode(self._thread.thread_id, mode)
            self._stored_mode = chosen
        return mode

    def _follow_state_mode(self, values: Mapping[str, Any]) -> None:
        """Continue in the mode that an accepted plan has put into the state, and into the list of threads."""
        mode = values.get("mode", "")
        if mode and self.mode == self.state_mode != mode:
            self.mode = self._stored_mode = mode
        self.state_mode = mode or self.state_mode

    @property
    def scope(self) -> Scope:
        """Where and in which mode the calls in question would run."""
        return Scope(self._thread.thread_id, self.mode, self._cwd)

    @property
    def last_settled_result(self) -> TurnResult | None:
        """The last result of this session, unless questions are open."""
        return None if self.open_questions else self._last_result

    async def run(self, work: Work) -> TurnResult:
        """Run until the turn ends or a person must answer; waits for a run that is under way.

        Raises:
            CancelledError: the run was cancelled from outside, or shut down past its grace period.
        """
        async with self._busy:
            self._stop_requested = self.can_cancel_pending = False
            self._result = asyncio.get_running_loop().create_future()
            # No await before this line: `stop` must find a task to cancel at any time.
            self._task = asyncio.create_task(self._run_to_result(work))
            try:
                result = await self._await_result(self._task)
            except BaseException:
                self._result.cancel()
                raise
            finally:
                self._task = None
            self._last_result = result
            self._result.set_result(result)
            bus = self._dependencies.bus
            bus.publish(turn_ended(result))
            if result.status in ("done", "limit", "stopped"):
                self.budget_reset = ""
                try:
                    await self._dependencies.prune_if_grown()
                except AgentError as failure:
                    # The turn has ended and is stored: only some space was not reclaimed.
                    bus.publish(WarningIssued(f"The thread was not pruned: {failure}"))
            return result

    async def resume_with_answers(self) -> TurnResult:
        """Resume if every open question has an answer; otherwise the result with the open questions.

        If the turn was stopped meanwhile, nothing is open and the last result is returned.
        """
        return self.last_settled_result or await self.run(self._answer)

    async def stop(self) -> TurnResult:
        """Stop the turn: the running call is interrupted, everything pending is cancelled, the thread is idle."""
        if self._task is not None and self._result is not None:
            self._stop_requested = True
            self._task.cancel()
            result = await asyncio.shield(self._result)
            if not result.questions:
                return result
        return await self.run(self._cancel_all)

    async def cancel_pending(self) -> None:
        """End a turn that only waits for the model, without asking it."""
        await self._run_to_result(self._cancel_all)

    async def shut_down(self) -> None:
        """Start nothing new; a running call gets a short grace period before it is interrupted."""
        if self._task is not None:
            self.stop_new_work()
            await await_or_cancel(self._task, self._graph)

    def stop_new_work(self) -> None:
        """Start nothing new, here and in sub-agents."""
        self._graph.drain()
        self._dependencies.sub_agents.stop_new_work()

    def lose_thread(self) -> None:
        """End what runs at once: this process no longer holds the thread, and can record nothing."""
        self._has_lost_thread = True
        if self._task is not None:
            self._task.cancel()

    def renew_budget_after_limit(self) -> None:
        """If the last run stopped at a limit, the next one gets a new budget for the turn."""
        if self._last_result is not None and self._last_result.status == "limit":
            self.budget_reset = new_owner_token()

    async def result(self, status: TurnStatus, values: Mapping[str, Any], error: str | None = None) -> TurnResult:
        """A result with this status, the newest checkpoint and the usage."""
        thread_id = self._thread.thread_id
        if values:
            self._spent = usage_with_sub_agents(self.shared_budget, thread_id, values)
        elif status == "stopped":  # Before its turn began.
            self._spent = UsageTotals({}, self._spent.thread)
        result = turn_result_of(status, thread_id, await self._dependencies.head(thread_id), values)
        turn, thread = map(usage_report, self._spent)
        return replace(result, usage=turn, thread_usage=thread, error=error or result.error)

    async def result_with_questions(self, values: Mapping[str, Any]) -> TurnResult:
        """The result while questions are open: those that have no recorded answer yet."""
        asked = [item.question for item in self.open_questions.values()]
        answers = await self._dependencies.decisions.find_answers(self._thread.thread_id, asked)
        unanswered = [item for call_id, item in self.open_questions.items() if call_id not in answers]
        questions: list[OpenQuestion] = []
        for item in unanswered:
            # A sub-agent's questions are asked in place of the question about its call.
            of_sub_agent = await self._dependencies.sub_agents.questions(item.question.call_id)
            questions += (item,) if of_sub_agent is None else of_sub_agent
        is_interrupted = any(item.question.kind == "recovery" for item in questions)
        result = await self.result("interrupted" if is_interrupted else "awaiting_approval", values)
        return replace(result, questions=tuple(questions))

    async def processes_of(self, call_id: str) -> tuple[ProcessTraces, ...]:
        """What is known of the processes of a call, to find those that still run."""
        rows = await self._journal_rows(call_id)
        return process_traces(rows, self._thread.thread_id, self._dependencies.blobs)

    async def _await_result(self, task: "asyncio.Task[TurnResult]") -> TurnResult:
        try:
            return await task
        except BaseException as failure:
            self.owner_token = new_owner_token()
            match failure:
                case ModelError():
                    snapshot = await self._graph.snapshot()
                    thread_id = self._thread.thread_id
                    self._spent = usage_with_sub_agents(self.shared_budget, thread_id, snapshot.values)
                    if snapshot.waits_for_model:
                        self.open_questions = {}  # All earlier questions were answered and their calls have run.
                    return await self.result("model_error", {}, str(failure))
                case StaleOwner():
                    return await self.result("failed", {}, f"{failure}; this process stops working on the thread")
                case LeaseLost():
                    return await self.result("failed", {}, str(failure))
                case asyncio.CancelledError() if self._has_lost_thread:
                    return await self.result("failed", {}, "This process lost its lease on the thread")
                case asyncio.CancelledError() if self._stop_requested:
                    return await self._run_to_result(self._cancel_all)
            raise

    async def _run_to_result(self, work: Work) -> TurnResult:
        output = await work(self._context())
        if output is None:
            return await self.result_with_questions({})
        while True:
            self.open_questions = {}
            self._follow_state_mode(output.values)
            if output.drained:
                return await self.result("resumable", output.values)
            questions = questions_in(output.question) if output.question is not None else []
            await self._questions.mark_applied(self._just_answered, questions)
            self._just_answered = []
            if not questions:
                result = await self.result(turn_outcome(output.values), output.values)
                if result.status != "stopped" and not self._stop_requested:
                    await self._dependencies.hooks.turn_ended(result.thread_id, result.status, result.answer)
                return result
            calls = output.values["calls"]
            envelope = await self._questions.envelope(questions, calls, self.owner_token)
            if envelope is None:
                return await self._wait_for_person(questions, output.values)
            await self._before_answering(questions, calls, envelope)
            output = await self._graph.answer(envelope, self._context())

    async def _wait_for_person(self, questions: list[Question], values: Mapping[str, Any]) -> TurnResult:
        self._cwd = values.get("cwd") or ""
        toolbox, blobs = self._dependencies.toolbox, self._dependencies.blobs
        described = {}
        for question in questions:
            call, rows = values["calls"][question.call_id], await self._journal_rows(question.call_id)
            described[question.call_id] = await describe_question(question, call, rows, toolbox, blobs, self.scope)
        self.open_questions = described
        failed = self._dependencies.sub_agents.take_failure()
        if failed is None:
            return await self.result_with_questions(values)
        self.open_questions = {}
        self.can_cancel_pending = True
        result = await self.result(failed.status, values, failed.error)
        return replace(result, budget=failed.budget, is_shared=bool(failed.budget))

    async def _answer(self, context: RunContext) -> RunOutput | None:
        questions = [item.question for item in self.open_questions.values()]
        calls = {call_id: item.call for call_id, item in self.open_questions.items()}
        envelope = await self._questions.envelope(questions, calls, context.owner_token)
        if envelope is None:
            return None
        await self._before_answering(questions, calls, envelope)
        return await self._graph.answer(envelope, replace(context, stopped_usage=self._used_by_stopped))

    async def _cancel_all(self, context: RunContext) -> RunOutput:
        snapshot = await self._graph.snapshot()
        if snapshot.is_idle:
            return RunOutput(snapshot.values)
        await self._stop_sub_agents((snapshot.values.get("calls") or {}).values())
        return await self._graph.resume(replace(context, stop=True, stopped_usage=self._used_by_stopped))

    async def _before_answering(
        self, questions: list[Question], calls: Mapping[str, ToolCallInfo], envelope: Mapping[str, Any]
    ) -> None:
        answers = envelope["answers"]
        self._just_answered = [question for question in questions if question.call_id in answers]
        ended = [call_id for call_id, answer in answers.items() if answer["kind"] in ("cancel", "done")]
        await self._stop_sub_agents(calls[call_id] for call_id in ended)

    async def _stop_sub_agents(self, calls: Iterable[ToolCallInfo]) -> None:
        """Before their calls are ended: no sub-agent may continue without a call that reads its result."""
        open_ids = [call["call_id"] for call in calls if call.get("resumable") and call["status"] not in FINAL]
        stopped = await self._dependencies.sub_agents.stop(self._thread.thread_id, open_ids)
        self._used_by_stopped = self._used_by_stopped | stopped

    async def _journal_rows(self, call_id: str) -> list[JournalRow]:
        return await self._dependencies.journal.rows(self._thread.thread_id, call_id)

    def _context(self) -> RunContext:
        return SessionContext(
            self.owner_token,
            max_steps=self._thread.max_steps,
            budget=self._thread.budget,
            finished_in_journal=self.journal_facts.finished,
            started_calls=self.journal_facts.started,
            reverted_attempts=self.journal_facts.reverted_attempts,
            imported_calls=self.imported_calls,
            # A mode that the state has already may change there while the run lasts.
            mode="" if self.mode == self.state_mode else self.mode,
            shared_budget=self._thread.shared_budget,
            budget_reset=self.budget_reset,
            stopped_usage=self._used_by_stopped,
            response_schema=self.response_schema,
            take_messages=self.take_messages,
        )


def turn_outcome(values: Mapping[str, Any]) -> TurnStatus:
    """How the last turn of an idle thread ended."""
    match (values.get("turn") or {}).get("outcome"):
        case "limit":
            return "limit"
        case "stopped":
            return "stopped"
    return "done"


def turn_result_of(status: TurnStatus, thread_id: str, checkpoint_id: str, values: Mapping[str, Any]) -> TurnResult:
    """The result as the state tells it, without the usage."""
    turn = values.get("turn") or {}
    at_limit = turn if status == "limit" else {}
    reason = at_limit.get("reason")
    return TurnResult(
        status=status,
        thread_id=thread_id,
        checkpoint_id=checkpoint_id,
        answer=last_answer(values),
        turn_id=turn_id_of(values),
        unmet=last_unmet(values) if status == "done" else "",
        error=f"the turn was paused at a limit: {reason}" if reason else None,
        budget=str(at_limit.get("budget") or ""),
        is_shared=bool(at_limit.get("shared")),
    )


async def await_or_cancel(task: "asyncio.Task[TurnResult]", graph: ThreadGraph) -> None:
    """Wait for the task; cancel it after the grace period, or at once if only a model request is under way."""
    grace_period = _GRACE_S
    # The run itself meets the same error and reports it.
    with contextlib.suppress(AgentError):
        if (await graph.snapshot()).waits_for_model:
            grace_period = 0
    _, running = await asyncio.wait({task}, timeout=grace_period)
    if running:
        task.cancel()
        await asyncio.wait({task})


class QuestionQueue:
    """Turns recorded answers into the envelope that resumes the graph."""

    def __init__(self, thread: Thread, dependencies: SessionDependencies) -> None:
        self._thread_id = thread.thread_id
        self._dependencies = dependencies
        self._retries: Counter[str] = Counter()

    async def envelope(
        self, questions: Sequence[Question], calls: Mapping[str, ToolCallInfo], owner_token: str
    ) -> dict[str, Any] | None:
        """The resume value for the graph; None while a question waits for a person's answer.

        Answers that need no person are applied first and alone: nobody is asked about a call that has its result.
        """
        recorded = await self._dependencies.decisions.find_answers(self._thread_id, questions)
        answers: dict[str, dict[str, Any]] = {}
        for question in questions:
            call = calls[question.call_id]
            rows = await self._dependencies.journal.rows(self._thread_id, question.call_id)
            if answer := await self._answer_from_journal(question, call, rows):
                answers[question.call_id] = answer_to_json(question, answer) | {"owner_token": "journal"}
            elif (
                question.kind == "recovery"
                and question.call_id not in recorded
                and await self._may_retry(call, rows)
            ):
                self._retries[question.call_id] += 1
                answers[question.call_id] = answer_to_json(question, Answer("retry", by="session", at=""))
        if not answers:
            if len(recorded) < len(questions):
                return None
            answers = {q.call_id: answer_to_json(q, recorded[q.call_id]) for q in questions}
        return {"by": owner_token, "at": self._dependencies.clock.now(), "answers": answers}

    async def mark_applied(self, answered: Sequence[Question], still_open: Iterable[Question]) -> None:
        """Note which answers the graph has applied; a question whose answer it rejected can be answered again."""
        now, decisions, open_again = self._dependencies.clock.now(), self._dependencies.decisions, set(still_open)
        applied = [question for question in answered if question not in open_again]
        rejected = [question.call_id for question in answered if question in open_again]
        if rejected:
            await decisions.supersede(self._thread_id, rejected, now)
        if applied:
            await decisions.mark_applied(self._thread_id, applied, now)

    async def _answer_from_journal(
        self, question: Question, call: ToolCallInfo, rows: Sequence[JournalRow]
    ) -> Answer | None:
        """The answer with which a finished call takes its recorded result; None if the call has none."""
        finished = [row for row in rows if row.is_finished]
        if not finished:
            return None
        if question.kind == "recovery":
            return Answer("retry", by="journal", at="")
        decisions, started_at = self._dependencies.decisions, finished[-1].started_at
        given = await decisions.latest_approval(self._thread_id, question.call_id, started_at)
        if given is not None and given.kind == "edit":
            return Answer(
                "edit", by="journal", at="", arguments=given.arguments, outside_sandbox=given.outside_sandbox
            )
        if call.get("requires_input"):
            return Answer("answer", by="journal", at="", reason=given.reason if given else "")
        return Answer("approve", by="journal", at="", outside_sandbox=given is not None and given.outside_sandbox)

    async def _may_retry(self, call: ToolCallInfo, rows: Sequence[JournalRow]) -> bool:
        """Whether a retry needs no person: the call only reads, or certainly never started.

        The journal rows do not contain attempts that a rewind reverted.
        """
        if call.get("resumable"):
            started = bool(call.get("started"))
            return await self._dependencies.sub_agents.may_resume(self._thread_id, call["call_id"], started=started)
        return (
            call.get("risk") == "low"
            and (call.get("kind") == "readonly" or not call.get("started"))
            and sum(row.may_have_started for row in rows) < MAX_AUTOMATIC_RETRIES
            and self._retries[call["call_id"]] < MAX_AUTOMATIC_RETRIES
        )
