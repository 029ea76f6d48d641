"""The sub-agents of one thread: each a thread of its own, held and driven by this process while its call runs.

Knows which call each belongs to, where it stands and what it waits for. Opens none itself, and answers nothing.

What sub-agents are made of: whose they are, who opens them, and what of each its parent may use. Shapes only.

What a state tells of its use, for a budget that a thread shares with its sub-agents. Reads values only.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from graph_agent.calls import FINAL
from graph_agent.errors import AgentError, ModelError, Paused, ThreadHeld
from graph_agent.events import Event, EventBus, StepStarted, ToolCallStarted, WarningIssued
from graph_agent.graph.limits import spent_by, spent_of_turn
from graph_agent.ports import AlwaysAllow, Answer, Proposal, Question
from graph_agent.ports.clock import sub_agent_id
from graph_agent.ports.usage import SharedBudget, UsageTotals, add_usage
from graph_agent.session.thread_graph import newest_call_ids
from graph_agent.session.turn_result import OpenQuestion, TurnResult, TurnStatus

__all__ = [
    "Answers",
    "Failed",
    "Given",
    "Order",
    "Parent",
    "SubAgent",
    "SubAgentHost",
    "SubAgentTask",
    "SubAgents",
    "Told",
    "begin",
    "usage_of",
    "usage_with_sub_agents",
]


@dataclass(frozen=True, slots=True)
class SubAgentTask:
    """What a sub-agent is to do, and with what."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """None: all that its parent is offered."""
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The call that an errand comes from."""

    thread_id: str
    call_id: str
    tell: Callable[[int, str], None]
    """Number of the step, and what it does."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an errand."""

    output: str
    error: str = ""
    was_stopped: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class Answers(Protocol):
    """Where the questions of a sub-agent are answered."""

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion: ...

    async def propose_grant(self, question: Question, arguments: Mapping[str, Any] | None) -> Proposal: ...

    async def decide(self, question: Question, answer: Answer, always: AlwaysAllow | None) -> Answer: ...

    async def end_processes(self, question: Question) -> tuple[int, ...]: ...


class SubAgent(Protocol):
    """A sub-agent's thread, held by this process."""

    @property
    def thread_id(self) -> str: ...

    async def answers_to(self, question: Question) -> Answers:
        """Where its question is answered, which may be with a sub-agent of its own."""
        ...

    async def standing(self) -> dict[str, Answer]:
        """The answers recorded so far to what it asks, by call id."""
        ...

    async def run_task(self, text: str, *, budget_reset: bool) -> TurnResult:
        """Begin with the text where nothing was begun, else go on with what there is, to the next rest.

        A rest at a limit that it shares with its parent is left where a person lets it go on, `afresh`.
        """
        ...

    async def proceed(self) -> TurnResult: ...

    async def waiting(self) -> TurnResult:
        """The rest with the questions that still have no answer."""
        ...

    async def used(self) -> UsageTotals:
        """Tokens and requests of the turn and of the whole thread."""
        ...

    async def stop(self) -> TurnResult: ...

    def stop_new_work(self) -> None:
        """Start nothing new."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Order:
    """The sub-agent to open."""

    thread_id: str
    parent_thread: str
    call_id: str
    errand: SubAgentTask
    mode: str
    system: str
    """The parent's system prompt: what is the same for both comes first, so that a provider may keep it."""
    bus: EventBus
    shared_budget: SharedBudget | None = None
    """What its requests draw on; None where it makes none."""


class SubAgentHost(Protocol):
    """What the sub-agents of a thread share with it."""

    async def undone(self, thread_id: str, call_id: str) -> int:
        """The newest attempt at a call that a rewind undid with the sub-agent that worked on it; else 0."""
        ...

    async def has(self, thread_id: str) -> bool:
        """Whether there is such a thread."""
        ...

    async def may_have_started_elsewhere(self, thread_id: str, call_id: str) -> bool:
        """Whether the thread came out of another one, or out of a file, and the call may have begun there."""
        ...

    async def open(self, order: Order) -> SubAgent:
        """Hold the sub-agent's thread, which is there, durably, when this returns.

        Raises:
            ThreadHeld: another process has it.
        """
        ...


class Parent(Protocol):
    """What of the parent its sub-agents take over."""

    @property
    def mode(self) -> str: ...

    def offer(self) -> Sequence[str]:
        """Names of the tools its model is offered."""
        ...

    async def system(self) -> str:
        """The system prompt of its thread."""
        ...

    @property
    def is_afresh(self) -> bool:
        """Whether a person lets those go on that rest at a limit which they share with it."""
        ...

    async def shared_budget(self) -> SharedBudget:
        """What its turn and thread may use, and have used so far."""
        ...

    @property
    def bus(self) -> EventBus: ...


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a sub-agent cannot go on now, as the rest of its parent tells it."""

    status: TurnStatus
    error: str
    budget: str = ""
    """Of a limit that it shares with its parent: the setting."""


_POLL_S = 0.3
_UNDONE = "The sub-agent used up its steps before it was done; what it said last is all there is. Its thread is {}."
_STOPPED = "The sub-agent was stopped before it was done; its thread is {}."
_SAID_NOTHING = "(the sub-agent ended without a word)"

_TASK = """\
You are a sub-agent: another agent hands you this task and reads nothing but your last message. Do the whole task, \
by yourself, and end with a message that holds everything it asks for, with paths and facts instead of promises.

Task: {description}

{prompt}"""


@dataclass(slots=True)
class _Agent:
    session: SubAgent
    title: str
    context: Given
    shared_budget: SharedBudget
    rest: TurnResult | None = None
    """Where it rests; None while it works, and after it was broken off."""
    steps: int = 0


class SubAgents:
    """Implements the port of `new_task`; without a household there are none."""

    def __init__(self, household: SubAgentHost | None = None) -> None:
        self._household = household
        self._parent: Parent | None = None
        self._agents: dict[str, _Agent] = {}
        self._failed: dict[str, Failed] = {}
        self._working = 0
        self._waiting = 0
        self._is_draining = False

    def set_parent(self, parent: Parent) -> None:
        """Whose sub-agents these are; said once, before any is asked for."""
        self._parent = parent

    def offer(self) -> Sequence[str]:
        """See `SubAgentPort`."""
        return self._parent.offer() if self._parent is not None else ()

    async def work(self, errand: SubAgentTask, context: Given) -> Told:
        """See `SubAgentPort`.

        Raises:
            Paused: it waits for a person, could not go on, or nothing new is started any more.
        """
        self._working += 1
        try:
            # In a context of its own: the framework would take its run for a part of the one under way.
            return await asyncio.create_task(self._work(errand, context), context=Context())
        finally:
            self._working -= 1

    async def may_go_on(self, thread_id: str, call_id: str, *, begun: bool) -> bool:
        """Whether the interrupted call of a sub-agent can simply be run again, without asking about it."""
        agent = self._agents.get(call_id)
        if agent is not None and agent.rest is not None:
            return not (await agent.session.waiting()).questions
        if self._household is None or call_id in self._failed:
            return False
        if await self._household.has(await self._id(thread_id, call_id)):
            return True
        return not begun or not await self._household.may_have_started_elsewhere(thread_id, call_id)

    async def questions(self, call_id: str) -> tuple[OpenQuestion, ...] | None:
        """What the sub-agent of a call waits for; None where it does not wait for anybody."""
        agent = self._agents.get(call_id)
        if agent is None or agent.rest is None:
            return None
        asked = (await agent.session.waiting()).questions
        return tuple(_from(agent, item) for item in asked)

    def take_failure(self) -> Failed | None:
        """Why one of them could not go on, once; the next run lets it try again."""
        failed = next(iter(self._failed.values()), None)
        self._failed.clear()
        return failed

    async def answers_to(self, question: Question) -> Answers | None:
        """Where a question of one of them is answered; None for one that none of them asks."""
        for agent in self._agents.values():
            if agent.rest is not None and any(item.question == question for item in agent.rest.questions):
                return await agent.session.answers_to(question)
        return None

    async def standing(self) -> dict[str, Answer]:
        """The answers recorded so far to what they ask, by call id."""
        found: dict[str, Answer] = {}
        for agent in self._agents.values():
            if agent.rest is not None:
                found |= await agent.session.standing()
        return found

    async def stop(self, thread_id: str, call_ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Let the sub-agents of these calls come to rest, stopped; before their calls are given up.

        Returns:
            What each has used, by call id.
        """
        used: dict[str, Mapping[str, Any]] = {}
        for call_id in call_ids:
            agent = self._agents.pop(call_id, None)
            session = agent.session if agent is not None else await self._left_behind(thread_id, call_id)
            if session is not None:
                try:
                    await session.stop()
                    used[call_id] = (await session.used()).thread
                finally:
                    await session.close()
                if self._parent is not None:
                    (await self._parent.shared_budget()).leave(session.thread_id)
        return used

    def stop_new_work(self) -> None:
        """Let none of them start anything new."""
        self._is_draining = True
        for agent in self._agents.values():
            agent.session.stop_new_work()

    async def close(self) -> None:
        """Give their threads back."""
        while self._agents:
            _, agent = self._agents.popitem()
            await agent.session.close()

    async def _work(self, errand: SubAgentTask, context: Given) -> Told:
        call_id = context.call_id
        try:
            rest = await self._taken_up(errand, context)
            agent = self._agents[call_id]
            while rest.questions:
                agent.rest = rest
                await self._answered(agent)
                agent.rest = None
                rest = await agent.session.proceed()
            return await self._ended(call_id, agent, rest)
        except AgentError as error:
            raise await self._given_up(call_id, Failed(_status(error), str(error))) from error

    async def _taken_up(self, errand: SubAgentTask, context: Given) -> TurnResult:
        agent = self._agents.get(context.call_id)
        if agent is None:
            agent = await self._opened(errand, context)
        agent.context = context
        if self._is_draining:
            agent.session.stop_new_work()
        at, agent.rest = agent.rest, None
        if at is not None:
            return await agent.session.proceed()
        task = _TASK.format(description=errand.description, prompt=errand.prompt)
        return await agent.session.run_task(task, budget_reset=self._parent is not None and self._parent.is_afresh)

    async def _opened(self, errand: SubAgentTask, context: Given) -> _Agent:
        household, parent = self._household, self._parent
        if household is None or parent is None:
            raise Paused("nobody here can open a sub-agent")
        bus, shared_budget = EventBus(), await parent.shared_budget()
        order = Order(
            thread_id=await self._id(context.thread_id, context.call_id),
            parent_thread=context.thread_id,
            call_id=context.call_id,
            errand=errand,
            mode=parent.mode,
            system=await parent.system(),
            bus=bus,
            shared_budget=shared_budget,
        )
        agent = _Agent(await household.open(order), errand.description, context, shared_budget)
        self._agents[context.call_id] = agent
        used = await agent.session.used()
        share = UsageTotals({}, used.thread) if parent.is_afresh else used
        shared_budget.join(order.thread_id, context.thread_id, context.call_id, share)
        bus.subscribe(lambda _, event: self._tell(agent, event))
        return agent

    def _tell(self, agent: _Agent, event: Event) -> None:
        match event:
            case StepStarted(step=step):
                agent.steps = step
                agent.context.tell(step, "asks the model")
            case ToolCallStarted(tool_name=tool_name, summary=display):
                agent.context.tell(agent.steps, display or tool_name)
            case WarningIssued(text=text) if self._parent is not None:
                self._parent.bus.publish(WarningIssued(f"sub-agent {agent.title!r}: {text}"))

    async def _answered(self, agent: _Agent) -> None:
        """Wait beside others that still work; where all of them wait, the parent rests and a person is asked.

        Raises:
            Paused: that is so.
        """
        self._waiting += 1
        try:
            while (await agent.session.waiting()).questions:
                if self._is_draining or self._waiting >= self._working:
                    raise Paused(f"sub-agent {agent.title!r} waits for a person")
                await asyncio.sleep(_POLL_S)
        finally:
            self._waiting -= 1

    async def _ended(self, call_id: str, agent: _Agent, rest: TurnResult) -> Told:
        thread_id = agent.session.thread_id
        used = await agent.session.used()
        metadata = {"usage": used.thread, "sub_agent": {"thread_id": thread_id}}
        if used.turn != used.thread:
            metadata["turn_usage"] = used.turn
        if rest.status == "limit" and rest.is_shared:
            raise await self._given_up(call_id, Failed("limit", rest.error or "", rest.budget))
        if rest.status not in ("done", "limit", "stopped"):
            raise await self._given_up(call_id, Failed(rest.status, rest.error or "the sub-agent was broken off"))
        agent.shared_budget.leave(thread_id)
        del self._agents[call_id]
        await agent.session.close()
        if rest.status == "done":
            return Told(rest.answer or _SAID_NOTHING, metadata=metadata)
        was_stopped = rest.status == "stopped"
        why = (_STOPPED if was_stopped else _UNDONE).format(thread_id)
        return Told(rest.answer, why, was_stopped, metadata)

    async def _given_up(self, call_id: str, failed: Failed) -> Paused:
        """For now: its thread is given back, and the parent's rest says why."""
        self._failed[call_id] = failed
        agent = self._agents.pop(call_id, None)
        if agent is not None:
            await agent.session.close()
        return Paused(failed.error)

    async def _left_behind(self, thread_id: str, call_id: str) -> SubAgent | None:
        """The sub-agent of a call that this life has not worked on; None where there is none to be had."""
        household, parent = self._household, self._parent
        child = await self._id(thread_id, call_id)
        if household is None or parent is None or not await household.has(child):
            return None
        order = Order(child, thread_id, call_id, SubAgentTask("", ""), parent.mode, "", EventBus())
        try:
            return await household.open(order)
        except ThreadHeld as held:
            parent.bus.publish(WarningIssued(f"a sub-agent goes on elsewhere: {held}"))
            return None

    async def _id(self, thread_id: str, call_id: str) -> str:
        undone = await self._household.undone(thread_id, call_id) if self._household is not None else 0
        return sub_agent_id(thread_id, call_id, undone)


def _status(error: AgentError) -> TurnStatus:
    if isinstance(error, ThreadHeld):
        return "held"
    return "model_error" if isinstance(error, ModelError) else "failed"


def _from(agent: _Agent, item: OpenQuestion) -> OpenQuestion:
    """The question as its parent puts it; one of a sub-agent's own sub-agent says both."""
    inner = f" > {item.sub_agent}" if item.sub_agent else ""
    thread_id = item.thread_id or agent.session.thread_id
    return replace(item, thread_id=thread_id, sub_agent=f"{agent.title}{inner}")


def usage_of(values: Mapping[str, Any]) -> UsageTotals:
    """What turn and thread used, calls among it that have ended and that the model has not been told of."""
    turn = (values.get("turn") or {}).get("usage")
    ended = [call for call in _newest(values).values() if call["status"] in FINAL]
    return UsageTotals(
        add_usage(turn, spent_of_turn(ended, {})), add_usage(values.get("usage"), spent_by(ended, {}))
    )


def begin(shared_budget: SharedBudget, thread_id: str, values: Mapping[str, Any], budget_reset: str) -> None:
    """Let the purse of a thread know where its turn stands; `afresh` as in `Life`."""
    turn = values.get("turn") or {}
    ended = [call for call in _newest(values).values() if call["status"] in FINAL]
    below = int(turn.get("sub_agent_requests", 0)) + int(spent_of_turn(ended, {}).get("requests", 0))
    still_open = _still_open(values)
    used = usage_of(values)
    if budget_reset not in ("", turn.get("budget_reset")):
        shared_budget.begin(thread_id, UsageTotals({}, used.thread), 0, still_open)
    else:
        shared_budget.begin(thread_id, used, int(turn.get("steps", 0)) + below, still_open)


def usage_with_sub_agents(shared_budget: SharedBudget, thread_id: str, values: Mapping[str, Any]) -> UsageTotals:
    """The same with what sub-agents whose calls are still open have used."""
    shared_budget.forget_told(thread_id, _still_open(values))
    own, below = usage_of(values), shared_budget.below()
    return UsageTotals(add_usage(own.turn, below.turn), add_usage(own.thread, below.thread))


def _still_open(values: Mapping[str, Any]) -> Collection[str]:
    return {call_id for call_id, call in _newest(values).items() if call["status"] not in FINAL}


def _newest(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The calls whose results the model has not been told yet."""
    asked = set(newest_call_ids(values))
    return {call_id: call for call_id, call in (values.get("calls") or {}).items() if call_id in asked}
