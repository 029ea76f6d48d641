"""A thread opened by a process: send, decide, proceed, stop. Knows no terminal and no database.

Which permission mode a living session may take. Judges no call.

Making a conversation shorter because a person wants it: a turn of its own, in which nothing else is done.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, get_args

from graph_agent.config.settings import Mode
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, TurnStarted, WarningIssued
from graph_agent.graph.history import printable
from graph_agent.graph.reasoning import COMPACT_ONLY
from graph_agent.ports import AlwaysAllow, Answer, AnswerKind, Proposal, Question, SandboxInfo
from graph_agent.ports.usage import SharedBudget, UsageTotals
from graph_agent.session.answers import Answering
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import GraphRunner
from graph_agent.session.subagents import Answers, begin, usage_of
from graph_agent.session.time_travel import (
    branch_from,
    finish_interrupted_rewind,
    format_finished_rewind,
    reevaluate_imported_calls,
)
from graph_agent.session.turn_result import OpenQuestion, TurnResult
from graph_agent.session.turns import MessageQueue, PromptHooks, Turns

__all__ = ["Session", "compacted", "require_selectable_mode"]


async def compacted(drive: GraphRunner, parts: SessionDependencies) -> TurnResult:
    """Compact a thread at rest. The turn it came to rest with stays its last one, with what came of it."""
    position = await parts.run.position()
    if not position.exists:
        return await drive.rest("done", position.values)
    turn = {COMPACT_ONLY: dict(position.values.get("turn") or {})}
    parts.bus.publish(TurnStarted())
    return await drive.run(lambda life: parts.run.begin({"turn": turn}, life))


def require_selectable_mode(mode: str) -> str:
    """The mode, where it is one that may be chosen now.

    Raises:
        UsageError: it is none, or one that only the start of the program may choose.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"there is no mode {mode!r}; choose one of {', '.join(get_args(Mode))}")
    if mode == "bypassPermissions":
        raise UsageError("bypassPermissions can only be chosen when the program starts: --mode bypassPermissions")
    return mode


class Session:
    """One thread, held by this process until `close`."""

    @classmethod
    async def open(cls, thread: Thread, parts: SessionDependencies) -> Self:
        """Take the thread; nothing about it is read before this process holds it.

        With an older checkpoint to go on from, that one is the head when this returns.

        Raises:
            UnknownId: the thread has no such checkpoint.
            ThreadHeld: another process has it; the message says who and since when.
        """
        session = cls(thread, parts)
        await parts.lock.acquire(thread.thread_id, session._drive.life_token)
        try:
            if resumable := await finish_interrupted_rewind(thread.thread_id, parts):
                parts.bus.publish(WarningIssued(format_finished_rewind(*resumable)))
            if thread.from_checkpoint is not None:
                await branch_from(thread.thread_id, thread.from_checkpoint, parts)
            await reevaluate_imported_calls(thread.thread_id, parts)
        except BaseException:
            await parts.lock.release()
            raise
        return session

    def __init__(self, thread: Thread, parts: SessionDependencies) -> None:
        self._thread = thread
        self._parts = parts
        self._drive, self._queue = (
            GraphRunner(thread, parts),
            MessageQueue(parts.inbox, thread.thread_id, thread.by),
        )
        self._prompting = PromptHooks(parts.hooks, thread.thread_id)
        self._turns = Turns(thread, parts, self._drive, self._queue, self._prompting)
        self._answering = Answering(thread, parts, self._drive)
        parts.sub_agents.set_parent(self)

    @property
    def thread_id(self) -> str:
        """The thread's id, whole."""
        return self._thread.thread_id

    @property
    def workspace(self) -> Path:
        """The folder the thread works in."""
        return self._thread.workspace

    @property
    def model_label(self) -> str:
        """What the status line calls the model."""
        return self._parts.models.label

    @property
    def model_name(self) -> str | None:
        """The model's own name; None while one must still be chosen, empty where there is nothing to choose."""
        return self._parts.models.name

    async def model_names(self) -> tuple[str, ...]:
        """The models there are to choose from; raises ModelError when they cannot be listed now."""
        return await self._parts.models.names()

    async def switch_model(self, name: str) -> None:
        """Ask this model from the next request on; raises UsageError where there is nothing to choose."""
        await self._parts.models.switch(name)

    @property
    def sandbox(self) -> SandboxInfo:
        """The sandbox that commands run in, as it is here and now; the first look may take some milliseconds."""
        return self._parts.sandbox()

    @property
    def by(self) -> str:
        """The name this session's answers carry."""
        return self._thread.by

    @property
    def bus(self) -> EventBus:
        """Where the session's events come from."""
        return self._parts.bus

    @property
    def mode(self) -> str:
        """The permission mode of the calls to come."""
        return self._drive.mode

    @mode.setter
    def mode(self, mode: str) -> None:
        self._drive.mode = require_selectable_mode(mode)

    def offer(self) -> list[str]:
        """Names of the tools the model is offered now."""
        return [str(item["function"]["name"]) for item in self._parts.toolbox.declarations(self.mode)]

    async def system(self) -> str:
        """The system prompt the thread begins with."""
        messages = (await self._parts.run.position()).values.get("messages") or []
        begins = bool(messages) and messages[0].type == "system"
        return str(messages[0].text) if begins else self._parts.instructions()

    @property
    def is_afresh(self) -> bool:
        """Whether a person let the turn go on after a limit in the middle of a call."""
        return bool(self._drive.budget_reset)

    async def shared_budget(self) -> SharedBudget:
        """What its sub-agents draw on: as one itself that of its parent, else what turn and thread may use."""
        if self._thread.shared_budget is None:
            values = (await self._parts.run.position()).values
            begin(self._drive.shared_budget, self.thread_id, values, self._drive.budget_reset)
        return self._thread.shared_budget or self._drive.shared_budget

    async def start(self) -> TurnResult:
        """Settle what an earlier life left open, and show what still waits for a person.

        Makes no model request: where that is all that is open, the rest is `broken_off`, and the next message ends
        that turn first while `continue_turn` asks the model again.
        """
        return await self._turns.start()

    async def send(self, text: str, attachment: str = "") -> TurnResult:
        """Start a turn with a message; it is on disk before the model is asked, and before a hook is.

        What it `brings` stands behind it and is not taken for the user's own words.

        Raises:
            UsageError: questions are open; they must be answered, or the turn stopped, first.
            MessageBlocked: a hook did not let it through.
        """
        return await self._turns.send(text, attachment)

    async def queue(self, text: str) -> int:
        """Keep a message until the thread is at rest; once its number is returned it may be shown as queued."""
        return await self._queue.add(text)

    async def queued(self) -> list[tuple[int, str]]:
        """Number and text of each message that waits, oldest first."""
        return await self._queue.waiting()

    async def remove_queued(self, number: int) -> bool:
        """Whether the message still waited; then it is gone, and never sent."""
        return await self._queue.remove_queued(number)

    async def move_queued(self, number: int, thread_id: str) -> int | None:
        """Let a message that waits wait in another thread; its number there, None where it waited no more."""
        return await self._queue.move_queued(number, thread_id)

    async def send_queued(self, attachment: str = "") -> TurnResult | None:
        """Start a turn with the oldest queued message; None, and nothing is done, when none waits.

        Raises:
            UsageError: questions are open.
        """
        return await self._turns.send_queued(attachment)

    async def continue_turn(self) -> TurnResult:
        """Ask the model again where its request is all that is open, or go on after a limit or a stop.

        A turn that was done stays done: its answer is returned and the model is not asked.

        Raises:
            UsageError: questions are open.
        """
        return await self._turns.continue_turn()

    async def run_task(self, text: str, *, budget_reset: bool = False) -> TurnResult:
        """As a sub-agent: begin the thread with this text, or go on with what it has, to the next rest.

        A turn that came to its end stays ended: its rest is returned as it was, and the model is not asked; but
        with `afresh` one goes on that rests at a limit it shares with its parent.
        """
        return await self._turns.run_task(text, budget_reset=budget_reset)

    async def compact(self) -> TurnResult:
        """Make the conversation that the model is told shorter; raises UsageError while questions are open."""
        await self._turns.ready()
        return await compacted(self._drive, self._parts)

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        """The open question as it would be asked with these arguments; what is to be answered is still `question`.

        Raises:
            AnswerRefused: the question is not open, or the call may not run with them.
        """
        return await (await self.answers_to(question)).preview_edit(question, arguments)

    async def propose_grant(self, question: Question, arguments: Mapping[str, Any] | None = None) -> Proposal:
        """What "always" would allow from now on, were it the answer to this question.

        Raises:
            AnswerRefused: the question is not open.
        """
        return await (await self.answers_to(question)).propose_grant(question, arguments)

    async def decide(
        self,
        question: Question,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: AlwaysAllow | None = None,
        outside: bool = False,
    ) -> Answer:
        """Record an answer, durable when this returns. The first answer wins: the one that stands is returned.

        What is allowed `always` is stored in the same step, and not at all where another answer stands. With
        `outside` an approval or edit lets this very call run outside of the sandbox: only a person may say that.

        Raises:
            AnswerRefused: the question is not open, the kind does not fit it, the edited arguments may not run, or
                there is no sandbox to run it outside of.
        """
        answer = Answer(kind, self.by, self._parts.clock.now(), arguments, printable(reason), outside)
        return await (await self.answers_to(question)).decide(question, answer, always)

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        """End what an interrupted call left running; returns the pids of what lives all the same.

        Raises:
            AnswerRefused: no such recovery question is open.
        """
        return await (await self.answers_to(question)).end_processes(question)

    async def proceed(self) -> TurnResult:
        """Go on when every open question has an answer; else return at once with what is still open.

        In a session that has done nothing yet this is `start`.
        """
        return await (self._drive.answer() if self._drive.open or self._drive.settled else self.start())

    async def answers_from_others(self) -> dict[str, Answer]:
        """Standing answers to open questions that others gave, by call id."""
        standing = await self.standing()
        return {call_id: answer for call_id, answer in standing.items() if answer.by != self.by}

    async def standing(self) -> dict[str, Answer]:
        """The answers recorded so far to what is open, here and in sub-agents, by call id."""
        return {**await self._answering.standing(), **await self._parts.sub_agents.standing()}

    async def answers_to(self, question: Question) -> Answers:
        """Where the question is answered: here, or with the sub-agent that asks it."""
        return await self._parts.sub_agents.answers_to(question) or self._answering

    async def stop(self) -> TurnResult:
        """Stop the turn; a `send`, `proceed` or `start` that is under way returns the same rest."""
        return await (self._drive.rest("stopped", {}) if self._prompting.stop() else self._drive.stop())

    async def shut_down(self) -> None:
        """Before the process ends: start nothing new, break off what still runs after a short grace.

        The call under way returns a `broken_off` rest, or raises CancelledError when it had to be broken off.
        """
        self._prompting.stop()
        await self._drive.shut_down()

    def stop_new_work(self) -> None:
        """Start nothing new; what runs comes to its end."""
        self._drive.stop_new_work()

    async def waiting(self) -> TurnResult:
        """The rest with the questions that still have no answer."""
        return await self._drive.waiting({})

    async def used(self) -> UsageTotals:
        """Tokens and requests of turn and thread, its sub-agents' among them."""
        return usage_of((await self._parts.run.position()).values)

    async def close(self) -> None:
        """End what runs in the background, give the thread back, and those of its sub-agents."""
        try:
            await self._parts.sub_agents.close()
            await self._parts.shells.close()
        finally:
            await self._parts.lock.release()
            await self._parts.close()
