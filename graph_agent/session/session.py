"""One thread, held by this process: opened, worked on turn by turn, and closed.

The life cycle, and the module that does each step:

1. `Session.open` takes the thread's lock and finishes what a killed process left half done (`time_travel.py`).
2. `start` continues the pending calls of an earlier run (`graph_runner.py`) and returns the questions about them.
3. `send`, `send_queued` and `continue_turn` begin or continue a turn (`message_input.py`, then `graph_runner.py`).
   A turn runs until it ends or the graph asks; every turn returns a `TurnResult` (`turn_result.py`).
4. `decide` records the answer to a question, about an approval or an interrupted call (`answers.py`). `proceed`
   resumes the graph as soon as every question has an answer (`graph_runner.py`).
5. `stop` ends the turn for good. `shut_down` interrupts it, so that a later process recovers it.
6. `close` ends background work and sub-agents (`subagents.py`) and releases the lock.

The graph itself runs in `thread_graph.py`, the only module here that knows LangGraph.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, get_args

from langchain_core.messages import HumanMessage, SystemMessage

from graph_agent.config.paths import own_command
from graph_agent.config.settings import Mode
from graph_agent.errors import MessageBlocked, UsageError
from graph_agent.events import AnswerKind, EventBus, MessageAdded, SessionOpened, TurnStarted, WarningIssued
from graph_agent.graph.compaction import context_use, measure_request
from graph_agent.graph.context_size import ContextUse
from graph_agent.graph.history import TYPED
from graph_agent.graph.reasoning import COMPACT_ONLY, next_request
from graph_agent.ports import AlwaysRules, Answer, GrantEffect, Proposal, Question, SandboxInfo, Scope
from graph_agent.ports.background import BackgroundTask
from graph_agent.ports.stored_text import storable
from graph_agent.ports.toolbox import ExpandedMessage
from graph_agent.ports.usage import SharedBudget, UsageTotals
from graph_agent.session.answers import AnswerRecorder
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import GraphRunner, turn_outcome
from graph_agent.session.message_input import MessageQueue, PromptHooks
from graph_agent.session.subagents import AnswerRecorderPort, begin_turn_budget, usage_of
from graph_agent.session.thread_graph import ThreadSnapshot
from graph_agent.session.time_travel import (
    branch_from,
    finish_interrupted_rewind,
    load_journal_facts,
    reevaluate_imported_calls,
)
from graph_agent.session.turn_result import OpenQuestion, TurnResult

__all__ = ["Session", "require_selectable_mode"]


class Session:
    """One thread, held by this process until `close`."""

    @classmethod
    async def open(cls, thread: Thread, dependencies: SessionDependencies) -> Self:
        """Take the thread's lock, then read the thread. A given older checkpoint becomes the head of a new branch.

        Raises:
            UnknownId: the thread has no such checkpoint.
            ThreadHeld: another process holds the thread; the message says which one and since when.
        """
        session = cls(thread, dependencies)
        runner = session._runner
        await dependencies.lock.acquire(thread.thread_id, runner.owner_token, runner.lose_thread)
        try:
            if finished := await finish_interrupted_rewind(thread.thread_id, dependencies):
                rewind, left = finished
                text = f"An interrupted rewind to checkpoint {rewind.checkpoint_id} was finished now"
                session.bus.publish(WarningIssued("; ".join([text, *left])))
            if thread.from_checkpoint is not None:
                await branch_from(thread.thread_id, thread.from_checkpoint, dependencies)
            session._runner.imported_calls = await reevaluate_imported_calls(thread.thread_id, dependencies)
        except BaseException:
            await dependencies.lock.release()
            raise
        return session

    def __init__(self, thread: Thread, dependencies: SessionDependencies) -> None:
        self._thread = thread
        self._dependencies = dependencies
        self._graph = dependencies.graph
        self._runner = GraphRunner(thread, dependencies)
        self._queue = MessageQueue(dependencies.inbox, thread.thread_id, thread.by)
        self._runner.take_messages = self._take_urgent_messages
        self._hooks = PromptHooks(dependencies.hooks, thread.thread_id)
        self._answers = AnswerRecorder(thread, dependencies, self._runner)
        dependencies.sub_agents.set_parent(self)

    async def start(self) -> TurnResult:
        """Continue the pending calls of an earlier run; returns the questions that are open.

        The model is not asked: if only its reply is missing, the status is `resumable`. The next message then ends
        that turn first, and `continue_turn` asks the model again.
        """
        with self._hooks.preparing_turn():
            snapshot = await self._graph.snapshot()
            self._runner.journal_facts = await load_journal_facts(
                self.thread_id, snapshot.values, self._dependencies.journal
            )
            self._runner.state_mode = snapshot.values.get("mode", "")
            self.bus.publish(
                SessionOpened(
                    self.thread_id, snapshot.checkpoint_id, str(self.workspace), self.model_label, self.mode
                )
            )
            await self._hooks.session_started(is_new=not snapshot.exists, mode=self.mode)
        await self._dependencies.shells.reattach(self.thread_id)
        if snapshot.is_idle:
            return await self._runner.result("done", snapshot.values)
        if snapshot.waits_for_model:
            return await self._runner.result("resumable", snapshot.values)
        self.bus.publish(TurnStarted())
        return await self._runner.run(self._graph.resume)

    async def send(self, text: str, attachment: str = "") -> TurnResult:
        """Start a turn with a message, which is durable before the model is asked and before a hook reads it.

        The attachment is added after the text and does not count as the user's own words.

        Raises:
            UsageError: questions are open; they must be answered, or the turn stopped, first.
            MessageBlocked: a hook rejects the message.
        """
        with self._hooks.preparing_turn():
            snapshot = await self._end_unanswered_turn()
            if not self._hooks.read_messages:
                result = await self._begin_message_turn(snapshot, text, None, attachment)
                if result is not None:
                    return result
                await self._queue.add(text)
                return await self._result_before_turn()
            number = await self._queue.add(text)
            async with self._queue.sending(number):
                return await self._send_from_queue(snapshot, number, text, attachment)

    async def send_for_schema(self, text: str, schema: Mapping[str, Any]) -> TurnResult:
        """Start a turn with a message whose answer should be JSON that fits a schema, which the endpoint gets too.

        Raises what `send` raises.
        """
        self._runner.response_schema = schema
        try:
            return await self.send(text)
        finally:
            self._runner.response_schema = None

    async def send_queued(self, attachment: str = "") -> TurnResult | None:
        """Start a turn with the oldest queued message; None if none waits.

        Raises:
            UsageError: questions are open.
        """
        async with self._queue.sending_oldest() as oldest:
            if oldest is None:
                return None
            with self._hooks.preparing_turn():
                self._require_no_open_question()
                if (await self._graph.snapshot()).open_nodes != ("__start__",):
                    return await self._send_from_queue(await self._end_unanswered_turn(), *oldest, attachment)
        # An earlier process died between storing a message and starting its turn: that message goes first.
        return await self.continue_turn()

    async def continue_turn(self, *, keeps_stopped: bool = False) -> TurnResult:
        """Ask the model again after it failed, or continue a turn that reached a limit or was stopped.

        A finished turn is not continued: its answer is returned without asking the model. With `keeps_stopped`
        neither is a stopped one.

        Raises:
            UsageError: questions are open, or the thread has no message yet.
        """
        self._require_no_open_question()
        snapshot = await self._graph.snapshot()
        if not snapshot.exists:
            raise UsageError(
                f"There is nothing to resume in thread {self.thread_id!r}: no message of it was stored. "
                f"Send one, or list threads with `{own_command()} threads list`."
            )
        if not snapshot.is_idle:
            self._runner.renew_budget_after_limit()
            self.bus.publish(TurnStarted())
            return await self._runner.run(self._graph.resume)
        outcome = turn_outcome(snapshot.values)
        if outcome == "done" or (outcome == "stopped" and keeps_stopped):
            return await self._runner.result(outcome, snapshot.values)
        self.bus.publish(TurnStarted())
        return await self._begin_turn({})

    async def run_task(self, text: str, *, budget_reset: bool = False) -> TurnResult:
        """As a sub-agent: begin the thread with this task, or continue what it has, until it ends or asks.

        A finished turn stays finished. With `budget_reset` a turn at a limit shared with the parent continues.
        """
        snapshot = await self._graph.snapshot()
        if not snapshot.exists:
            return await self.send(text)
        if snapshot.is_idle:
            if budget_reset and (snapshot.values.get("turn") or {}).get("shared"):
                return await self.continue_turn()
            return await self._runner.result(turn_outcome(snapshot.values), snapshot.values)
        result = await self.start()
        if result.status == "resumable" or (budget_reset and result.is_shared):
            return await self.continue_turn()
        return result

    async def compact(self) -> TurnResult:
        """Compact the context that is sent to the model, in a turn of its own.

        The last turn of the thread and its outcome stay what they are.

        Raises:
            UsageError: questions are open.
        """
        await self._end_unanswered_turn()
        snapshot = await self._graph.snapshot()
        if not snapshot.exists:
            return await self._runner.result("done", snapshot.values)
        turn = {COMPACT_ONLY: dict(snapshot.values.get("turn") or {})}
        self.bus.publish(TurnStarted())
        return await self._runner.run(lambda context: self._graph.begin({"turn": turn}, context))

    async def decide(
        self,
        question: Question,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: AlwaysRules | None = None,
        outside: bool = False,
    ) -> Answer:
        """Record an answer durably. The first answer wins; one of the same kind is returned in place of this one.

        `always` stores rules in the same step, and only if this answer counts. With `outside`, which only a person
        may choose, an approval or edit lets this one call run outside the sandbox.

        Raises:
            AnswerRefused: somebody answered otherwise before, the question is not open, the kind does not fit it,
                policy denies the edited arguments, or there is no sandbox to leave.
        """
        answer = Answer(kind, self.by, self._dependencies.clock.now(), arguments, storable(reason), outside)
        return await (await self.answers_to(question)).decide(question, answer, always)

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        """The open question as it would be asked with these arguments; the answer is still given to `question`.

        Raises:
            AnswerRefused: the question is not open, or policy denies the arguments.
        """
        return await (await self.answers_to(question)).preview_edit(question, arguments)

    async def propose_grant(
        self, question: Question, arguments: Mapping[str, Any] | None = None, effect: GrantEffect = "allow"
    ) -> Proposal:
        """The rules that answering this question with "always", or "always deny", would store.

        Raises:
            AnswerRefused: the question is not open.
        """
        return await (await self.answers_to(question)).propose_grant(question, arguments, effect)

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        """End the processes that an interrupted call left running; returns the pids of those that survive.

        Raises:
            AnswerRefused: no such recovery question is open.
        """
        return await (await self.answers_to(question)).end_processes(question)

    async def answers_to(self, question: Question) -> AnswerRecorderPort:
        """Who records answers to the question: this session, or the sub-agent that asks it."""
        return await self._dependencies.sub_agents.answers_to(question) or self._answers

    async def recorded_answers(self) -> dict[str, Answer]:
        """The answers given so far to open questions, here and in sub-agents, by call id."""
        return {**await self._answers.recorded(), **await self._dependencies.sub_agents.recorded_answers()}

    async def answers_from_others(self) -> dict[str, Answer]:
        """The answers to open questions that other processes gave, by call id."""
        answers = await self.recorded_answers()
        return {call_id: answer for call_id, answer in answers.items() if answer.by != self.by}

    async def proceed(self) -> TurnResult:
        """Continue if every open question has an answer; otherwise return at once what is still open.

        In a session that has done nothing yet this is `start`.
        """
        if self._runner.open_questions or self._runner.last_settled_result:
            return await self._runner.resume_with_answers()
        return await self.start()

    async def waiting(self) -> TurnResult:
        """The questions that still have no answer."""
        return await self._runner.result_with_questions({})

    @property
    def background_count(self) -> int:
        """How many background commands of this session run."""
        return self._dependencies.shells.running_count

    async def tasks(self) -> list[BackgroundTask]:
        """The background commands and sub-agents that run in this process for the thread."""
        own = await self._dependencies.shells.running(self.thread_id)
        return [*own, *await self._dependencies.sub_agents.tasks()]

    async def stop_task(self, task_id: str) -> bool:
        """Stop one of them; False if it does not run any more."""
        dependencies = self._dependencies
        return await dependencies.shells.stop(task_id) or await dependencies.sub_agents.stop_task(task_id)

    async def task_output(self, task_id: str) -> str:
        """The end of what a background command wrote."""
        return await self._dependencies.shells.output(task_id) or ""

    async def stop(self) -> TurnResult:
        """Stop the turn; a `send`, `proceed` or `start` that is under way returns the same result."""
        if self._hooks.stop():
            return await self._runner.result("stopped", {})
        result = await self._runner.stop()
        self._queue.release()
        return result

    async def shut_down(self) -> None:
        """Before the process ends: start nothing new, and interrupt what still runs after a grace period.

        The method under way returns a `resumable` result, or raises CancelledError if it had to be interrupted.
        """
        self._dependencies.lock.mark_ending()
        self._hooks.stop()
        await self._runner.shut_down()

    def stop_new_work(self) -> None:
        """Start nothing new; what runs is finished."""
        self._runner.stop_new_work()

    async def close(self) -> None:
        """End background work and release the thread; one without a message may be deleted."""
        self._dependencies.lock.mark_ending()
        try:
            await self._dependencies.sub_agents.close()
            await self._dependencies.shells.close()
            if self._dependencies.delete_if_empty is not None:
                await self._dependencies.delete_if_empty()
        finally:
            await self._dependencies.lock.release()
            await self._dependencies.close()

    async def queue(self, text: str, *, is_urgent: bool = False) -> int:
        """Store a message durably until the thread is idle; returns its number.

        An urgent one is sent with the next model request of the running turn, if there is another.
        """
        return await self._queue.add(text, is_urgent=is_urgent)

    async def mark_queued_urgent(self) -> int:
        """Make every queued message urgent; returns how many are queued."""
        return await self._queue.mark_urgent()

    async def queued(self) -> list[tuple[int, str]]:
        """Number and text of each waiting message, in the order in which they are sent."""
        return await self._queue.waiting()

    async def remove_queued(self, number: int) -> bool:
        """Delete a waiting message; False if it no longer waits."""
        return await self._queue.remove(number)

    async def move_queued(self, number: int, thread_id: str) -> int | None:
        """Move a waiting message to another thread; its number there, None if it no longer waits here."""
        return await self._queue.move(number, thread_id)

    @property
    def thread_id(self) -> str:
        """The whole id of the thread."""
        return self._thread.thread_id

    @property
    def workspace(self) -> Path:
        """The folder the thread works in."""
        return self._thread.workspace

    @property
    def by(self) -> str:
        """The name that answers of this session carry."""
        return self._thread.by

    @property
    def bus(self) -> EventBus:
        """The session's events."""
        return self._dependencies.bus

    @property
    def model_label(self) -> str:
        """The model as the status line shows it."""
        return self._dependencies.models.label

    @property
    def model_name(self) -> str | None:
        """The name of the model; None while one must still be chosen, empty if there is no choice."""
        return self._dependencies.models.name

    async def model_names(self) -> tuple[str, ...]:
        """The models to choose from; raises ModelError if they cannot be listed."""
        return await self._dependencies.models.names()

    async def switch_model(self, name: str) -> None:
        """Use this model from the next request on; raises UsageError if there is no choice."""
        await self._dependencies.models.switch(name)

    @property
    def sandbox(self) -> SandboxInfo:
        """The sandbox that commands run in; the first look may take some milliseconds."""
        return self._dependencies.sandbox()

    @property
    def mode(self) -> str:
        """The permission mode of the calls to come."""
        return self._runner.mode

    @mode.setter
    def mode(self, mode: str) -> None:
        self._runner.mode = require_selectable_mode(mode)

    async def change_mode(self, mode: str) -> None:
        """Set the mode, also for processes that continue the thread; raises UsageError if it cannot be set."""
        self.mode = mode
        await self._runner.store_mode()

    @property
    def has_renewed_budget(self) -> bool:
        """Whether the user continued the turn after it reached a limit in the middle of a call."""
        return bool(self._runner.budget_reset)

    def tool_names(self) -> list[str]:
        """The tools that the model is offered now."""
        return [str(item["function"]["name"]) for item in self._dependencies.toolbox.declarations(self.mode)]

    async def system_prompt(self) -> str:
        """The system prompt of the thread."""
        messages = (await self._graph.snapshot()).values.get("messages") or []
        has_own = bool(messages) and messages[0].type == "system"
        return str(messages[0].text) if has_own else self._dependencies.instructions()

    async def context_use(self) -> ContextUse:
        """What the next model request would hold if no message were added."""
        parts, values = self._dependencies, (await self._graph.snapshot()).values
        request = next_request(values, parts.toolbox, self.mode, parts.instructions)
        measured = await measure_request(values, request, self.model_label, parts.find_context_window)
        return context_use(request, measured)

    async def shared_budget(self) -> SharedBudget:
        """The budget that sub-agents draw on: the parent's if this is a sub-agent, otherwise that of the turn."""
        if self._thread.shared_budget is not None:
            return self._thread.shared_budget
        values = (await self._graph.snapshot()).values
        begin_turn_budget(self._runner.shared_budget, self.thread_id, values, self._runner.budget_reset)
        return self._runner.shared_budget

    async def used(self) -> UsageTotals:
        """Tokens and requests of turn and thread, including finished sub-agents."""
        return usage_of((await self._graph.snapshot()).values)

    async def _end_unanswered_turn(self) -> ThreadSnapshot:
        """Where a new turn begins; a turn that only waits for the model is ended first.

        Raises:
            UsageError: questions or calls are open.
        """
        self._require_no_open_question()
        snapshot = await self._graph.snapshot()
        turn = snapshot.values.get("turn") or {}
        # The turn has ended, or is a compaction that begins: only its last step is not applied yet.
        is_over = not snapshot.open_nodes and bool(turn.get("outcome") or COMPACT_ONLY in turn)
        if snapshot.waits_for_model or self._runner.can_cancel_pending or is_over:
            await self._runner.cancel_pending()
        elif not snapshot.is_idle:
            raise UsageError(
                f"Thread {self.thread_id} has pending calls. Resolve them first: "
                f"`{own_command()} resume {self.thread_id}`."
            )
        return snapshot

    def _require_no_open_question(self) -> None:
        if self._runner.open_questions:
            waiting = ", ".join(self._runner.open_questions)
            raise UsageError(
                f"Thread {self.thread_id} waits for answers about {waiting}. Answer them or stop the turn first."
            )

    async def _send_from_queue(
        self, snapshot: ThreadSnapshot, number: int, text: str, attachment: str = ""
    ) -> TurnResult:
        """Send a queued message; it leaves the queue once it is sent, or if a hook rejects it."""
        inbox = self._dependencies.inbox
        try:
            added = await self._hooks.before_message(text, self.mode)
        except MessageBlocked:
            await inbox.remove(self.thread_id, number)
            raise
        if added is None:
            return await self._result_before_turn()
        attachment = "\n\n".join(filter(None, (attachment, added)))
        result = await self._begin_message_turn(snapshot, text, f"inbox-{number}", attachment)
        if result is None:
            return await self._result_before_turn()
        await inbox.take(self.thread_id, number)
        return result

    async def _begin_message_turn(
        self, snapshot: ThreadSnapshot, text: str, message_id: str | None, attachment: str
    ) -> TurnResult | None:
        """Start the turn of a message; None if the user stopped before it began."""
        mentioned = await self._dependencies.mentions.expand(storable(text), self._runner.scope)
        if self._hooks.is_stopped:
            return None
        messages: list[Any] = [] if snapshot.exists else [SystemMessage(self._dependencies.instructions())]
        messages.append(_message(text, mentioned, message_id, attachment, self._hooks.take_greeting()))
        self.bus.publish(TurnStarted(text))
        self._publish_notes(mentioned)
        return await self._begin_turn({"messages": messages})

    async def _take_urgent_messages(self, scope: Scope) -> list[HumanMessage]:
        """The urgent messages as the running turn gets them; one that a hook rejects is deleted."""
        messages = []
        for number, text in await self._queue.claim_urgent():
            try:
                added = await self._hooks.before_message(text, scope.mode) if self._hooks.read_messages else ""
                if added is None:  # Stopped: the message waits.
                    break
            except MessageBlocked as refusal:
                await self._queue.drop(number)
                self.bus.publish(WarningIssued(str(refusal)))
                continue
            mentioned = await self._dependencies.mentions.expand(storable(text), scope)
            messages.append(_message(text, mentioned, f"inbox-{number}", added))
            self.bus.publish(MessageAdded(text))
            self._publish_notes(mentioned)
        return messages

    def _publish_notes(self, mentioned: ExpandedMessage) -> None:
        for note in mentioned.notes:
            self.bus.publish(WarningIssued(note))

    async def _begin_turn(self, update: dict[str, Any]) -> TurnResult:
        self._hooks.turn_begins()
        turn = {"steps": 0, "outcome": "", "usage": {}}
        state = {"turn": turn, "mode": await self._runner.store_mode(), **update}
        return await self._runner.run(lambda context: self._graph.begin(state, context))

    async def _result_before_turn(self) -> TurnResult:
        """The message waits in the queue; the answer of the previous turn is no answer to it."""
        return await self._runner.result("stopped", {})


def _message(text: str, mentioned: ExpandedMessage, message_id: str | None, *attachments: str) -> HumanMessage:
    """A message with the files that it mentions, and what else goes with it."""
    content = storable("\n\n".join(filter(None, (mentioned.text, *attachments))))
    extra: dict[str, Any] = {"images": list(mentioned.images)} if mentioned.images else {}
    if content != storable(text):
        extra[TYPED] = len(storable(text))
    return HumanMessage(content, id=message_id, additional_kwargs=extra)


def require_selectable_mode(mode: str) -> str:
    """The mode, if a running session may switch to it.

    Raises:
        UsageError: there is no such mode, or it can only be chosen at the start.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"Unknown mode {mode!r}. Choose one of {', '.join(get_args(Mode))}.")
    if mode == "bypassPermissions":
        raise UsageError("bypassPermissions can only be chosen at the start: --mode bypassPermissions.")
    return mode
