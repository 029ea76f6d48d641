"""Drives the graph from one rest to the next: runs, answers what needs no person, stops. Asks nobody itself.

Waits for a run that starts nothing new, and breaks it off where that takes too long. Knows no signal.

How a turn came to rest, read from the state it left. Reads values only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from graph_agent.calls import FINAL, ToolCallInfo
from graph_agent.errors import AgentError, ModelError, StaleOwner
from graph_agent.events import TurnEnded, WarningIssued
from graph_agent.graph.run_context import RunContext, new_owner_token
from graph_agent.ports import JournalRow, Question, Scope
from graph_agent.ports.usage import SharedBudget, UsageTotals, usage_report
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.questions import QuestionQueue, questions_in
from graph_agent.session.recovery import describe_question, process_traces
from graph_agent.session.subagents import usage_with_sub_agents
from graph_agent.session.thread_graph import RunOutput, ThreadGraph, last_answer, last_unmet
from graph_agent.session.time_travel import JournalFacts
from graph_agent.session.turn_result import OpenQuestion, TurnResult, TurnStatus
from graph_agent.toolbox.tool_context import ProcessTraces

__all__ = ["GraphRunner", "Work", "await_or_cancel", "turn_outcome", "turn_result_of"]


def turn_outcome(values: Mapping[str, Any]) -> TurnStatus:
    """How the turn ended that a thread at rest ended with."""
    match (values.get("turn") or {}).get("outcome"):
        case "limit":
            return "limit"
        case "stopped":
            return "stopped"
    return "done"


def turn_result_of(status: TurnStatus, thread_id: str, checkpoint_id: str, values: Mapping[str, Any]) -> TurnResult:
    """The rest with what the state tells of it, but for what was used."""
    turn = values.get("turn") or {}
    at_limit = turn if status == "limit" else {}
    why = at_limit.get("reason")
    return TurnResult(
        status=status,
        thread_id=thread_id,
        checkpoint_id=checkpoint_id,
        answer=last_answer(values),
        unmet=last_unmet(values) if status == "done" else "",
        error=f"the turn was paused at a limit: {why}" if why else None,
        budget=str(at_limit.get("budget") or ""),
        is_shared=bool(at_limit.get("shared")),
    )


_GRACE_S = 5.0
"""How long a running call may go on before it is stopped."""


async def await_or_cancel(task: "asyncio.Task[TurnResult]", run: ThreadGraph) -> None:
    """Return once the task is done: after a grace by force, at once where no more than a request is under way."""
    _, running = await asyncio.wait({task}, timeout=0 if await _only_asks(run) else _GRACE_S)
    if running:
        task.cancel()
        await asyncio.wait({task})


async def _only_asks(run: ThreadGraph) -> bool:
    """Whether it waits for the model alone, which is asked again in the next life."""
    try:
        return (await run.position()).waits_for_model
    except AgentError:
        return False  # The run itself meets the same and says so.


Work = Callable[[RunContext], Awaitable[RunOutput | None]]
"""Runs the graph once; None when there is nothing to run, because an open question still waits for its answer."""


class GraphRunner:
    """The one place that runs the graph; at most one run at a time."""

    def __init__(self, thread: Thread, parts: SessionDependencies) -> None:
        self._thread = thread
        self._parts = parts
        self._desk = QuestionQueue(thread, parts)
        self._token = new_owner_token()
        self._task: asyncio.Task[TurnResult] | None = None
        self._rested: asyncio.Future[TurnResult] | None = None
        self._last: TurnResult | None = None
        self._busy = asyncio.Lock()
        self._stop_asked = False
        self._answered: list[Question] = []
        self.open: dict[str, OpenQuestion] = {}
        """Open questions by call id, as the graph last asked them."""
        self.mode = thread.mode
        self._cwd = ""
        self._used: dict[str, Mapping[str, Any]] = {}
        """What sub-agents had used that were stopped, by call id."""
        self._spent = UsageTotals()
        """What the requests of turn and thread used, as far as this process knows."""
        self.can_cancel_pending = False
        """Whether all that is open are calls whose sub-agents could not go on."""
        self.earlier = JournalFacts()
        self.shared_budget = SharedBudget(thread.budget, thread.max_steps)
        """What the thread's sub-agents draw on, unless it is one itself."""
        self.budget_reset = ""
        """As in `Life`."""

    @property
    def life_token(self) -> str:
        """Token of the present life; a new one after each run that did not return."""
        return self._token

    @property
    def stored_mode(self) -> str:
        """The mode as a later life finds it: bypassPermissions is never stored, it must be asked for anew."""
        return "default" if self.mode == "bypassPermissions" else self.mode

    @property
    def scope(self) -> Scope:
        """Where and under which mode the calls that are asked about would run."""
        return Scope(self._thread.thread_id, self.mode, self._cwd)

    async def run(self, work: Work) -> TurnResult:
        """Run until the graph rests or asks a person; waits for a run that is under way.

        Raises:
            CancelledError: the run was cancelled from outside, or suspended past its grace.
        """
        async with self._busy:
            self._stop_asked = self.can_cancel_pending = False
            self._rested = asyncio.get_running_loop().create_future()
            # Created without a pause before it: from the first instant on there is a task that `stop` can cancel.
            self._task = asyncio.create_task(self._until_rest(work))
            try:
                rest = await self._finish(self._task)
            except BaseException:
                self._rested.cancel()
                raise
            finally:
                self._task = None
            self._last = rest
            self._rested.set_result(rest)
            self._tell(rest)
            if rest.status in ("done", "limit", "stopped"):
                self.budget_reset = ""
                await self._tidy()
            return rest

    async def stop(self) -> TurnResult:
        """Stop the turn: a running call is broken off, all that is open is cancelled, the thread rests."""
        if self._task is not None and self._rested is not None:
            self._stop_asked = True
            self._task.cancel()
            rest = await asyncio.shield(self._rested)
            if not rest.questions:
                return rest
        return await self.run(self._wind_up)

    async def shut_down(self) -> None:
        """Start nothing new; give a call that runs a short grace, then break it off for a later life to recover."""
        task = self._task
        if task is None:
            return
        self.stop_new_work()
        await await_or_cancel(task, self._parts.run)

    def go_beyond_limit(self) -> None:
        """Where the last run came to rest at a limit, the next one has a fresh budget of the turn."""
        if self._last is not None and self._last.status == "limit":
            self.budget_reset = new_owner_token()

    def stop_new_work(self) -> None:
        """Start nothing new, here and in sub-agents."""
        self._parts.run.stop_new_work()
        self._parts.sub_agents.stop_new_work()

    async def answer(self) -> TurnResult:
        """Resume with the standing answers when every open question has one; else the rest with what is open.

        The turn may have been stopped meanwhile: then nothing is open and the last rest stands.
        """
        return self.settled or await self.run(self._answer)

    @property
    def settled(self) -> TurnResult | None:
        """The last rest of this session, where nothing is open any more."""
        return None if self.open else self._last

    async def cancel_pending(self) -> None:
        """End a turn whose model request is all that is open, without sending it."""
        await self._until_rest(self._wind_up)

    async def rest(self, status: TurnStatus, values: Mapping[str, Any], error: str | None = None) -> TurnResult:
        """The rest as a value."""
        thread_id = self._thread.thread_id
        if values:
            self._spent = usage_with_sub_agents(self.shared_budget, thread_id, values)
        elif status == "stopped":  # Before its turn began.
            self._spent = UsageTotals({}, self._spent.thread)
        rest = turn_result_of(status, thread_id, await self._parts.head(thread_id), values)
        turn, thread = map(usage_report, self._spent)
        return replace(rest, usage=turn, thread_usage=thread, error=error or rest.error)

    async def _finish(self, task: "asyncio.Task[TurnResult]") -> TurnResult:
        try:
            return await task
        except ModelError as failure:
            self._token = new_owner_token()
            position = await self._parts.run.position()
            self._spent = usage_with_sub_agents(self.shared_budget, self._thread.thread_id, position.values)
            if position.waits_for_model:
                self.open = {}  # Whatever was asked before has been answered and has run.
            return await self.rest("model_error", {}, str(failure))
        except StaleOwner as failure:
            self._token = new_owner_token()
            return await self.rest("failed", {}, f"{failure}; this process stops working on the thread")
        except asyncio.CancelledError:
            self._token = new_owner_token()
            if not self._stop_asked:
                raise
            return await self._until_rest(self._wind_up)
        except BaseException:
            self._token = new_owner_token()
            raise

    async def _until_rest(self, work: Work) -> TurnResult:
        ran = await work(self._life())
        if ran is None:
            return await self.waiting({})
        while True:
            self.open = {}
            if ran.drained:
                return await self.rest("resumable", ran.values)
            questions = questions_in(ran.question) if ran.question is not None else []
            await self._desk.settle(self._answered, questions)
            self._answered = []
            if not questions:
                rest = await self.rest(turn_outcome(ran.values), ran.values)
                if rest.status != "stopped" and not self._stop_asked:
                    await self._parts.hooks.turn_ended(rest.thread_id, rest.status, rest.answer)
                return rest
            envelope = await self._desk.envelope(questions, ran.values["calls"], self._token)
            if envelope is None:
                return await self._wait_for_person(questions, ran)
            await self._note_answered(questions, ran.values["calls"], envelope)
            ran = await self._parts.run.answer(envelope, self._life())

    async def _wait_for_person(self, questions: list[Question], ran: RunOutput) -> TurnResult:
        calls = ran.values["calls"]
        self._cwd = ran.values.get("cwd") or ""
        toolbox, blobs = self._parts.toolbox, self._parts.blobs
        gathered = [
            await describe_question(q, calls[q.call_id], await self.rows(q.call_id), toolbox, blobs, self.scope)
            for q in questions
        ]
        self.open = {item.question.call_id: item for item in gathered}
        failed = self._parts.sub_agents.take_failure()
        if failed is not None:
            self.open = {}
            self.can_cancel_pending = True
            rest = await self.rest(failed.status, ran.values, failed.error)
            return replace(rest, budget=failed.budget, is_shared=bool(failed.budget))
        return await self.waiting(ran.values)

    async def rows(self, call_id: str) -> list[JournalRow]:
        """What the journal holds of a call."""
        return await self._parts.journal.rows(self._thread.thread_id, call_id)

    async def left_running(self, call_id: str) -> tuple[ProcessTraces, ...]:
        """What is known of the processes of a call, for `orphans` to look for."""
        return process_traces(await self.rows(call_id), self._thread.thread_id, self._parts.blobs)

    async def waiting(self, values: Mapping[str, Any]) -> TurnResult:
        """The rest while questions are open: those that no answer stands for, of this life or an earlier one."""
        asked = [item.question for item in self.open.values()]
        standing = await self._parts.decisions.standing(self._thread.thread_id, asked)
        unanswered = [item for call_id, item in self.open.items() if call_id not in standing]
        questions = tuple([one for item in unanswered for one in await self._asked_by(item)])
        is_broken = any(item.question.kind == "recovery" for item in questions)
        rest = await self.rest("interrupted" if is_broken else "awaiting_approval", values)
        return replace(rest, questions=questions)

    async def _asked_by(self, item: OpenQuestion) -> tuple[OpenQuestion, ...]:
        """What a person is asked for the question: itself, or what the sub-agent waits for that does its call."""
        instead = await self._parts.sub_agents.questions(item.question.call_id)
        return (item,) if instead is None else instead

    async def _answer(self, life: RunContext) -> RunOutput | None:
        questions = [item.question for item in self.open.values()]
        calls = {call_id: item.call for call_id, item in self.open.items()}
        envelope = await self._desk.envelope(questions, calls, life.owner_token)
        if envelope is None:
            return None
        await self._note_answered(questions, calls, envelope)
        return await self._parts.run.answer(envelope, replace(life, stopped_usage=self._used))

    async def _wind_up(self, life: RunContext) -> RunOutput:
        position = await self._parts.run.position()
        if position.at_rest:
            return RunOutput(position.values)
        await self._stop_sub_agents((position.values.get("calls") or {}).values())
        return await self._parts.run.resume(replace(life, stop=True, stopped_usage=self._used))

    def _life(self) -> RunContext:
        return RunContext(
            self._token,
            max_steps=self._thread.max_steps,
            budget=self._thread.budget,
            finished_in_journal=self.earlier.recorded,
            started_calls=self.earlier.begun,
            reverted_attempts=self.earlier.undone,
            mode=self.mode,
            shared_budget=self._thread.shared_budget,
            budget_reset=self.budget_reset,
            stopped_usage=self._used,
        )

    async def _note_answered(
        self, questions: list[Question], calls: Mapping[str, ToolCallInfo], envelope: Mapping[str, Any]
    ) -> None:
        answers = envelope["answers"]
        self._answered = [question for question in questions if question.call_id in answers]
        given_up = [call_id for call_id, answer in answers.items() if answer["kind"] in ("cancel", "done")]
        await self._stop_sub_agents(calls[call_id] for call_id in given_up)

    async def _stop_sub_agents(self, calls: Iterable[ToolCallInfo]) -> None:
        """Before their calls are given up: what works for nobody must not go on."""
        left = [call["call_id"] for call in calls if call.get("resumable") and call["status"] not in FINAL]
        self._used = self._used | await self._parts.sub_agents.stop(self._thread.thread_id, left)

    async def _tidy(self) -> None:
        try:
            await self._parts.prune_if_grown()
        except AgentError as failure:
            # The turn has ended well and is stored: only some room was not won back.
            self._parts.bus.publish(WarningIssued(f"the thread was not pruned: {failure}"))

    def _tell(self, rest: TurnResult) -> None:
        ended = TurnEnded(rest.status, rest.answer, rest.checkpoint_id, dict(rest.usage), rest.error)
        self._parts.bus.publish(ended)
