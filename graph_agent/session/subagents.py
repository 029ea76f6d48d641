"""The sub-agents of one thread: each a thread of its own, held and driven by this process while its call runs.

Knows which call each belongs to, where it stands and what it waits for. Opens none itself, and answers nothing.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any

from graph_agent.errors import AgentError, ModelError, Paused, ThreadHeld
from graph_agent.events import CallStarted, Event, EventBus, StepStarted, Warned
from graph_agent.ports import Answer, Question
from graph_agent.ports.descent import child_id
from graph_agent.ports.purse import Purse, Used
from graph_agent.session.api import OpenQuestion, Rest, RestStatus
from graph_agent.session.subagent import (
    Answers,
    Errand,
    Failed,
    Given,
    Household,
    Order,
    Parent,
    SubAgent,
    Told,
)

__all__ = ["SubAgents"]

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
    purse: Purse
    rest: Rest | None = None
    """Where it rests; None while it works, and after it was broken off."""
    steps: int = 0


class SubAgents:
    """Implements the port of `new_task`; without a household there are none."""

    def __init__(self, household: Household | None = None) -> None:
        self._household = household
        self._parent: Parent | None = None
        self._agents: dict[str, _Agent] = {}
        self._failed: dict[str, Failed] = {}
        self._working = 0
        self._waiting = 0
        self._is_draining = False

    def belong_to(self, parent: Parent) -> None:
        """Whose sub-agents these are; said once, before any is asked for."""
        self._parent = parent

    def offer(self) -> Sequence[str]:
        """See `SubAgentPort`."""
        return self._parent.offer() if self._parent is not None else ()

    async def work(self, errand: Errand, context: Given) -> Told:
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
        return not begun or not await self._household.may_have_begun_elsewhere(thread_id, call_id)

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
                    (await self._parent.purse()).leave(session.thread_id)
        return used

    def drain(self) -> None:
        """Let none of them start anything new."""
        self._is_draining = True
        for agent in self._agents.values():
            agent.session.drain()

    async def close(self) -> None:
        """Give their threads back."""
        while self._agents:
            _, agent = self._agents.popitem()
            await agent.session.close()

    async def _work(self, errand: Errand, context: Given) -> Told:
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

    async def _taken_up(self, errand: Errand, context: Given) -> Rest:
        agent = self._agents.get(context.call_id)
        if agent is None:
            agent = await self._opened(errand, context)
        agent.context = context
        if self._is_draining:
            agent.session.drain()
        at, agent.rest = agent.rest, None
        if at is not None:
            return await agent.session.proceed()
        task = _TASK.format(description=errand.description, prompt=errand.prompt)
        return await agent.session.work_on(task, afresh=self._parent is not None and self._parent.is_afresh)

    async def _opened(self, errand: Errand, context: Given) -> _Agent:
        household, parent = self._household, self._parent
        if household is None or parent is None:
            raise Paused("nobody here can open a sub-agent")
        bus, purse = EventBus(), await parent.purse()
        order = Order(
            thread_id=await self._id(context.thread_id, context.call_id),
            parent_thread=context.thread_id,
            call_id=context.call_id,
            errand=errand,
            mode=parent.mode,
            system=await parent.system(),
            bus=bus,
            purse=purse,
        )
        agent = _Agent(await household.open(order), errand.description, context, purse)
        self._agents[context.call_id] = agent
        used = await agent.session.used()
        share = Used({}, used.thread) if parent.is_afresh else used
        purse.join(order.thread_id, context.thread_id, context.call_id, share)
        bus.subscribe(lambda _, event: self._tell(agent, event))
        return agent

    def _tell(self, agent: _Agent, event: Event) -> None:
        match event:
            case StepStarted(step=step):
                agent.steps = step
                agent.context.tell(step, "asks the model")
            case CallStarted(tool_name=tool_name, display=display):
                agent.context.tell(agent.steps, display or tool_name)
            case Warned(text=text) if self._parent is not None:
                self._parent.bus.publish(Warned(f"sub-agent {agent.title!r}: {text}"))

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

    async def _ended(self, call_id: str, agent: _Agent, rest: Rest) -> Told:
        thread_id = agent.session.thread_id
        used = await agent.session.used()
        metadata = {"usage": used.thread, "sub_agent": {"thread_id": thread_id}}
        if used.turn != used.thread:
            metadata["turn_usage"] = used.turn
        if rest.status == "limit" and rest.is_shared:
            raise await self._given_up(call_id, Failed("limit", rest.error or "", rest.budget))
        if rest.status not in ("done", "limit", "stopped"):
            raise await self._given_up(call_id, Failed(rest.status, rest.error or "the sub-agent was broken off"))
        agent.purse.leave(thread_id)
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
        order = Order(child, thread_id, call_id, Errand("", ""), parent.mode, "", EventBus())
        try:
            return await household.open(order)
        except ThreadHeld as held:
            parent.bus.publish(Warned(f"a sub-agent goes on elsewhere: {held}"))
            return None

    async def _id(self, thread_id: str, call_id: str) -> str:
        undone = await self._household.undone(thread_id, call_id) if self._household is not None else 0
        return child_id(thread_id, call_id, undone)


def _status(error: AgentError) -> RestStatus:
    if isinstance(error, ThreadHeld):
        return "held"
    return "model_error" if isinstance(error, ModelError) else "failed"


def _from(agent: _Agent, item: OpenQuestion) -> OpenQuestion:
    """The question as its parent puts it; one of a sub-agent's own sub-agent says both."""
    inner = f" > {item.sub_agent}" if item.sub_agent else ""
    thread_id = item.thread_id or agent.session.thread_id
    return replace(item, thread_id=thread_id, sub_agent=f"{agent.title}{inner}")
