"""The sub-agents of one thread: each is a thread of its own, held and run by this process while its call runs."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from graph_agent.calls import FINAL
from graph_agent.errors import AgentError, ModelError, Paused, ThreadHeld
from graph_agent.events import Event, EventBus, StepStarted, ToolCallFinished, ToolCallStarted, WarningIssued
from graph_agent.graph.limits import usage_of_calls
from graph_agent.ports import AlwaysRules, Answer, GrantEffect, Proposal, Question
from graph_agent.ports.background import BackgroundTask
from graph_agent.ports.storage import ANSWER_POLL_S, sub_agent_id
from graph_agent.ports.usage import SharedBudget, UsageTotals, add_usage
from graph_agent.session.thread_graph import newest_call_ids
from graph_agent.session.turn_result import OpenQuestion, TurnResult, TurnStatus

__all__ = [
    "AgentSession",
    "AnswerRecorderPort",
    "SubAgentFailure",
    "SubAgentHost",
    "SubAgentReport",
    "SubAgentRequest",
    "SubAgentTask",
    "SubAgents",
    "TaskCall",
    "begin_turn_budget",
    "usage_of",
    "usage_with_sub_agents",
]

_NO_ANSWER = "(the sub-agent ended without an answer)"
_STOPPED = "The sub-agent was stopped before it finished; its thread is {}."
_LIMIT_REACHED = (
    "The sub-agent used up its steps before it finished; its last message is all there is. Its thread is {}."
)

_TASK = """\
You are a sub-agent: another agent gives you this task and reads nothing but your last message. Do the whole task \
yourself, and end with a message that contains everything it asks for, with paths and facts instead of promises.

Task: {description}

{prompt}"""


@dataclass(frozen=True, slots=True)
class SubAgentTask:
    """What a sub-agent is to do, and with which tools."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """None: all that its parent is offered."""
    max_steps: int | None = None
    agent: str = ""
    """Name of the defined agent that does it; empty for one like its parent."""


@dataclass(frozen=True, slots=True)
class TaskCall:
    """The tool call that delegates a task."""

    thread_id: str
    call_id: str
    report_step: Callable[[int, str], None]
    """Takes the number of the step, and what it does."""


@dataclass(frozen=True, slots=True)
class SubAgentReport:
    """What a sub-agent returns to its parent."""

    output: str
    error: str = ""
    was_stopped: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubAgentRequest:
    """The sub-agent to open."""

    thread_id: str
    parent_thread: str
    call_id: str
    task: SubAgentTask
    mode: str
    system_prompt: str
    """That of the parent: a common beginning lets the provider cache it."""
    bus: EventBus
    shared_budget: SharedBudget | None = None
    """What its requests draw on; None if it makes none."""


@dataclass(frozen=True, slots=True)
class SubAgentFailure:
    """Why a sub-agent cannot continue now, as its parent's result says it."""

    status: TurnStatus
    error: str
    budget: str = ""
    """At a limit that it shares with its parent: the setting."""


class AnswerRecorderPort(Protocol):
    """Where the questions of a session are answered; see the methods of `Session` with the same names."""

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion: ...

    async def propose_grant(
        self, question: Question, arguments: Mapping[str, Any] | None, effect: GrantEffect
    ) -> Proposal: ...

    async def decide(self, question: Question, answer: Answer, always: AlwaysRules | None) -> Answer: ...

    async def end_processes(self, question: Question) -> tuple[int, ...]: ...


class AgentSession(Protocol):
    """What sub-agents and their parent need of each other's `Session`."""

    @property
    def thread_id(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def bus(self) -> EventBus: ...

    @property
    def has_renewed_budget(self) -> bool: ...

    def tool_names(self) -> Sequence[str]: ...

    async def system_prompt(self) -> str: ...

    async def shared_budget(self) -> SharedBudget: ...

    async def answers_to(self, question: Question) -> AnswerRecorderPort: ...

    async def recorded_answers(self) -> dict[str, Answer]: ...

    async def run_task(self, text: str, *, budget_reset: bool) -> TurnResult: ...

    async def proceed(self) -> TurnResult: ...

    async def waiting(self) -> TurnResult: ...

    async def used(self) -> UsageTotals: ...

    async def stop(self) -> TurnResult: ...

    async def tasks(self) -> list[BackgroundTask]: ...

    async def stop_task(self, task_id: str) -> bool: ...

    def stop_new_work(self) -> None: ...

    async def close(self) -> None: ...


class SubAgentHost(Protocol):
    """Opens the threads of sub-agents, and knows which exist."""

    async def last_reverted(self, thread_id: str, call_id: str) -> int:
        """The newest attempt at a call that a rewind reverted together with its sub-agent; otherwise 0."""
        ...

    async def has(self, thread_id: str) -> bool:
        """Whether there is such a thread."""
        ...

    async def may_have_started_elsewhere(self, thread_id: str, call_id: str) -> bool:
        """Whether the thread was forked or imported, and the call may have started where it came from."""
        ...

    async def open(self, request: SubAgentRequest) -> AgentSession:
        """Open the sub-agent's thread, which is durable when this returns.

        Raises:
            ThreadHeld: another process holds it.
        """
        ...


@dataclass(slots=True)
class _SubAgent:
    session: AgentSession
    title: str
    call: TaskCall
    shared_budget: SharedBudget
    result: TurnResult | None = None
    """What it waits with; None while it works."""
    steps: int = 0
    was_stopped: bool = False


class SubAgents:
    """Implements the port of `new_task`. Without a host there are no sub-agents."""

    def __init__(self, host: SubAgentHost | None = None) -> None:
        self._host = host
        self._parent: AgentSession | None = None
        self._agents: dict[str, _SubAgent] = {}
        """By call id."""
        self._failed: dict[str, SubAgentFailure] = {}
        self._working = 0
        self._waiting = 0
        self._is_draining = False

    def set_parent(self, parent: AgentSession) -> None:
        """Set the session that delegates; once, before any task."""
        self._parent = parent

    def offer(self) -> Sequence[str]:
        """See `SubAgentPort`."""
        return self._parent.tool_names() if self._parent is not None else ()

    async def work(self, task: SubAgentTask, call: TaskCall) -> SubAgentReport:
        """See `SubAgentPort`.

        Raises:
            Paused: the sub-agent waits for a person, could not continue, or nothing new may be started.
        """
        self._working += 1
        try:
            # In a context of its own: otherwise LangGraph takes it for a part of the parent's run.
            return await asyncio.create_task(self._work(task, call), context=Context())
        finally:
            self._working -= 1

    async def may_resume(self, thread_id: str, call_id: str, *, started: bool) -> bool:
        """Whether the interrupted call of a sub-agent can be run again without asking."""
        agent = self._agents.get(call_id)
        if agent is not None and agent.result is not None:
            return not (await agent.session.waiting()).questions
        if self._host is None or call_id in self._failed:
            return False
        if await self._host.has(await self._child_id(thread_id, call_id)):
            return True
        return not started or not await self._host.may_have_started_elsewhere(thread_id, call_id)

    async def questions(self, call_id: str) -> tuple[OpenQuestion, ...] | None:
        """The open questions of the sub-agent of a call; None if it does not wait."""
        agent = self._agents.get(call_id)
        if agent is None or agent.result is None:
            return None
        return tuple(
            replace(
                item,
                thread_id=item.thread_id or agent.session.thread_id,
                # A question of the sub-agent's own sub-agent names both.
                sub_agent=" > ".join(filter(None, (agent.title, item.sub_agent))),
            )
            for item in (await agent.session.waiting()).questions
        )

    async def answers_to(self, question: Question) -> AnswerRecorderPort | None:
        """Who records answers to a question of a sub-agent; None if no sub-agent asks it."""
        for agent in self._agents.values():
            if agent.result is not None and any(item.question == question for item in agent.result.questions):
                return await agent.session.answers_to(question)
        return None

    async def recorded_answers(self) -> dict[str, Answer]:
        """The answers recorded so far to questions of sub-agents, by call id."""
        answers: dict[str, Answer] = {}
        for agent in self._agents.values():
            if agent.result is not None:
                answers |= await agent.session.recorded_answers()
        return answers

    def take_failure(self) -> SubAgentFailure | None:
        """Why a sub-agent could not continue, once; the next run lets it try again."""
        failure = next(iter(self._failed.values()), None)
        self._failed.clear()
        return failure

    async def stop(self, thread_id: str, call_ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Stop the sub-agents of these calls, before the calls are ended; returns what each used, by call id."""
        used: dict[str, Mapping[str, Any]] = {}
        for call_id in call_ids:
            agent = self._agents.pop(call_id, None)
            session = agent.session if agent is not None else await self._open_existing(thread_id, call_id)
            if session is not None:
                try:
                    await session.stop()
                    used[call_id] = (await session.used()).thread
                finally:
                    await session.close()
                if self._parent is not None:
                    (await self._parent.shared_budget()).end_sub_agent(session.thread_id)
        return used

    async def tasks(self) -> list[BackgroundTask]:
        """The sub-agents, each followed by what runs beside it."""
        found = []
        for call_id, agent in tuple(self._agents.items()):
            if agent.was_stopped:
                continue
            state = f"step {agent.steps}" if agent.result is None else "waits for an answer"
            found += [BackgroundTask(call_id, "sub-agent", agent.title, state, agent.session.thread_id)]
            found += await agent.session.tasks()
        return found

    async def stop_task(self, task_id: str) -> bool:
        """Stop a sub-agent, whose call then fails, or something beside one; False if nothing has this id."""
        if (agent := self._agents.get(task_id)) is not None:
            agent.was_stopped = True
            await agent.session.stop()
            return True
        for other in tuple(self._agents.values()):
            if await other.session.stop_task(task_id):
                return True
        return False

    def stop_new_work(self) -> None:
        """Let no sub-agent start anything new."""
        self._is_draining = True
        for agent in self._agents.values():
            agent.session.stop_new_work()

    async def close(self) -> None:
        """Release the threads of all sub-agents."""
        while self._agents:
            _, agent = self._agents.popitem()
            await agent.session.close()

    async def _work(self, task: SubAgentTask, call: TaskCall) -> SubAgentReport:
        try:
            agent = self._agents.get(call.call_id) or await self._open(task, call)
            agent.call = call
            if self._is_draining:
                agent.session.stop_new_work()
            waited_with, agent.result = agent.result, None
            if waited_with is not None:
                result = await agent.session.proceed()
            else:
                text = _TASK.format(description=task.description, prompt=task.prompt)
                budget_reset = self._parent is not None and self._parent.has_renewed_budget
                result = await agent.session.run_task(text, budget_reset=budget_reset)
            while result.questions:
                agent.result = result
                await self._wait_for_answers(agent)
                agent.result = None
                result = await agent.session.proceed()
            return await self._report(agent, result)
        except AgentError as error:
            status: TurnStatus = "failed"
            if isinstance(error, ThreadHeld | ModelError):
                status = "held" if isinstance(error, ThreadHeld) else "model_error"
            raise await self._fail(call.call_id, SubAgentFailure(status, str(error))) from error

    async def _open(self, task: SubAgentTask, call: TaskCall) -> _SubAgent:
        host, parent = self._host, self._parent
        if host is None or parent is None:
            raise Paused("No sub-agent can be opened here.")
        bus, shared_budget = EventBus(), await parent.shared_budget()
        request = SubAgentRequest(
            thread_id=await self._child_id(call.thread_id, call.call_id),
            parent_thread=call.thread_id,
            call_id=call.call_id,
            task=task,
            mode=parent.mode,
            system_prompt=await parent.system_prompt(),
            bus=bus,
            shared_budget=shared_budget,
        )
        agent = _SubAgent(await host.open(request), task.description, call, shared_budget)
        self._agents[call.call_id] = agent
        used = await agent.session.used()
        share = UsageTotals({}, used.thread) if parent.has_renewed_budget else used
        shared_budget.add_sub_agent(request.thread_id, call.thread_id, call.call_id, share)

        def forward(_: object, event: Event) -> None:
            match event:
                case StepStarted(step=step):
                    agent.steps = step
                    agent.call.report_step(step, "asks the model")
                case ToolCallStarted(tool_name=tool_name, summary=summary):
                    agent.call.report_step(agent.steps, summary or tool_name)
                case ToolCallFinished(metadata={"noted": str(fact)}):
                    # It is in the prompt of every later conversation, so it is shown where the user looks.
                    noted = f"remembered for later conversations: {fact}  (undo: /memory undo)"
                    parent.bus.publish(WarningIssued(f"sub-agent {agent.title!r} {noted}"))
                case WarningIssued(text=text):
                    parent.bus.publish(WarningIssued(f"sub-agent {agent.title!r}: {text}"))

        bus.subscribe(forward)
        return agent

    async def _wait_for_answers(self, agent: _SubAgent) -> None:
        """Wait while other sub-agents work; once all of them wait, the parent pauses and a person is asked.

        Raises:
            Paused: all wait.
        """
        self._waiting += 1
        try:
            while (await agent.session.waiting()).questions:
                if self._is_draining or self._waiting >= self._working:
                    raise Paused(f"sub-agent {agent.title!r} waits for a person")
                await asyncio.sleep(ANSWER_POLL_S)
        finally:
            self._waiting -= 1

    async def _report(self, agent: _SubAgent, result: TurnResult) -> SubAgentReport:
        thread_id, call_id = agent.session.thread_id, agent.call.call_id
        used = await agent.session.used()
        metadata = {"usage": used.thread, "sub_agent": {"thread_id": thread_id}}
        if used.turn != used.thread:
            metadata["turn_usage"] = used.turn
        if result.status == "limit" and result.is_shared:
            raise await self._fail(call_id, SubAgentFailure("limit", result.error or "", result.budget))
        if result.status not in ("done", "limit", "stopped"):
            error = result.error or "the sub-agent was interrupted"
            raise await self._fail(call_id, SubAgentFailure(result.status, error))
        agent.shared_budget.end_sub_agent(thread_id)
        del self._agents[call_id]
        await agent.session.close()
        if result.status == "done":
            return SubAgentReport(result.answer or _NO_ANSWER, metadata=metadata)
        was_stopped = result.status == "stopped"
        error = (_STOPPED if was_stopped else _LIMIT_REACHED).format(thread_id)
        return SubAgentReport(result.answer, error, was_stopped, metadata)

    async def _fail(self, call_id: str, failure: SubAgentFailure) -> Paused:
        """For now: release its thread, and let the parent's result say why."""
        self._failed[call_id] = failure
        agent = self._agents.pop(call_id, None)
        if agent is not None:
            await agent.session.close()
        return Paused(failure.error)

    async def _open_existing(self, thread_id: str, call_id: str) -> AgentSession | None:
        """The sub-agent of a call that this process has not worked on; None if there is none or it is held."""
        host, parent = self._host, self._parent
        child = await self._child_id(thread_id, call_id)
        if host is None or parent is None or not await host.has(child):
            return None
        request = SubAgentRequest(child, thread_id, call_id, SubAgentTask("", ""), parent.mode, "", EventBus())
        try:
            return await host.open(request)
        except ThreadHeld as held:
            parent.bus.publish(WarningIssued(f"A sub-agent continues in another process: {held}"))
            return None

    async def _child_id(self, thread_id: str, call_id: str) -> str:
        reverted = await self._host.last_reverted(thread_id, call_id) if self._host is not None else 0
        return sub_agent_id(thread_id, call_id, reverted)


def usage_of(values: Mapping[str, Any]) -> UsageTotals:
    """What turn and thread used, including finished calls whose results the model has not received yet."""
    turn, thread = (values.get("turn") or {}).get("usage"), values.get("usage")
    finished, _ = _newest_calls(values)
    return UsageTotals(
        add_usage(turn, usage_of_calls(finished, {}, of_turn=True)), add_usage(thread, usage_of_calls(finished, {}))
    )


def usage_with_sub_agents(shared_budget: SharedBudget, thread_id: str, values: Mapping[str, Any]) -> UsageTotals:
    """What turn and thread used, including sub-agents whose calls are still open."""
    shared_budget.forget_ended(thread_id, _newest_calls(values)[1])
    own, below = usage_of(values), shared_budget.sub_agent_usage()
    return UsageTotals(add_usage(own.turn, below.turn), add_usage(own.thread, below.thread))


def begin_turn_budget(
    shared_budget: SharedBudget, thread_id: str, values: Mapping[str, Any], budget_reset: str
) -> None:
    """Set the shared budget to what the stored turn has used; `budget_reset` as in `RunContext`."""
    turn = values.get("turn") or {}
    used, (finished, open_ids) = usage_of(values), _newest_calls(values)
    if budget_reset not in ("", turn.get("budget_reset")):
        shared_budget.set_own_usage(thread_id, UsageTotals({}, used.thread), 0, open_ids)
    else:
        in_calls = usage_of_calls(finished, {}, of_turn=True).get("requests", 0)
        requests = sum(map(int, (turn.get("steps", 0), turn.get("sub_agent_requests", 0), in_calls)))
        shared_budget.set_own_usage(thread_id, used, requests, open_ids)


def _newest_calls(values: Mapping[str, Any]) -> tuple[list[Any], set[str]]:
    """The calls whose results the model has not received yet: the finished ones, and the ids of the open ones."""
    calls = values.get("calls") or {}
    newest = {call_id: calls[call_id] for call_id in newest_call_ids(values) if call_id in calls}
    finished = [call for call in newest.values() if call["status"] in FINAL]
    return finished, {call_id for call_id, call in newest.items() if call["status"] not in FINAL}
