"""The turns of a held thread: begun with a message, gone on with, or ended before the next. Answers no question.

What the user's hooks say about a session and its messages, before the model hears of them. Sends nothing.

Messages that wait until a held thread is at rest: queued, taken back, or sent. Runs no turn.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from graph_agent.errors import MessageBlocked, UsageError
from graph_agent.events import SessionOpened, TurnStarted, WarningIssued
from graph_agent.graph.history import TYPED, printable
from graph_agent.graph.reasoning import COMPACT_ONLY
from graph_agent.ports import Inbox
from graph_agent.ports.toolbox import Hooks
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.graph_runner import GraphRunner, turn_outcome
from graph_agent.session.thread_graph import ThreadSnapshot
from graph_agent.session.time_travel import load_journal_facts
from graph_agent.session.turn_result import TurnResult

__all__ = ["MessageQueue", "PromptHooks", "Turns"]


class PromptHooks:
    """The hooks of one session that are no part of a turn; whoever stops the turn stops them."""

    def __init__(self, hooks: Hooks, thread_id: str) -> None:
        self._hooks = hooks
        self._thread_id = thread_id
        self._greeting = ""
        self._running: asyncio.Task[str] | None = None
        self._is_ahead = False
        self.is_stopped = False
        """Whether what is `ahead` of a turn was stopped before there was anything to stop: it must not begin."""

    @property
    def is_wanted(self) -> bool:
        """Whether a message has to be asked about before it is sent."""
        return self._hooks.has_message_hooks

    async def started(self, *, is_new: bool, mode: str) -> None:
        """The session begins; what its hooks say goes with the next message."""
        source = "startup" if is_new else "resume"
        self._greeting = await self._said(self._hooks.session_started(self._thread_id, source, mode)) or ""

    async def asked(self, text: str, mode: str) -> str | None:
        """What goes behind the message; None where it was stopped, and the message must not be sent now.

        Raises:
            MessageBlocked: it must not be sent at all.
        """
        return await self._said(self._hooks.prompted(self._thread_id, text, mode))

    def take_greeting(self) -> str:
        """What the hooks said when the session began; once."""
        greeting, self._greeting = self._greeting, ""
        return greeting

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """What is done in this block comes before a turn; a stop meanwhile is for it, unless `turn_begins`."""
        self._is_ahead, self.is_stopped = True, False
        try:
            yield
        finally:
            self._is_ahead = False

    def turn_begins(self) -> None:
        """From here on it is the turn that is stopped."""
        self._is_ahead = False

    def stop(self) -> bool:
        """Whether no turn has begun yet; a hook that runs ends now, and what is ahead of a turn goes no further."""
        self.is_stopped = self._is_ahead
        if self._running is not None:
            self._running.cancel()
        return self._is_ahead or self._running is not None

    async def _said(self, hooks: Coroutine[object, object, str]) -> str | None:
        if self.is_stopped:
            hooks.close()
            return None
        self._running = running = asyncio.ensure_future(hooks)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait({running})
            raise
        finally:
            self._running = None
        return None if running.cancelled() else running.result()


@dataclass(slots=True)
class MessageQueue:
    """The inbox of one thread, as seen by the session that holds it: nobody else sends from it."""

    inbox: Inbox
    thread_id: str
    by: str
    """The name under which messages are queued."""
    _sending: int | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def add(self, text: str) -> int:
        """Keep a message, durably; returns its number."""
        return await self.inbox.queue(self.thread_id, printable(text), self.by)

    async def waiting(self) -> list[tuple[int, str]]:
        """Number and text of each, oldest first; the one that is being sent is none of them."""
        return [one for one in await self.inbox.waiting(self.thread_id) if one[0] != self._sending]

    async def remove_queued(self, number: int) -> bool:
        """Whether it still waited, and is gone now: a message is taken back or sent, never both."""
        async with self._turn:
            return number != self._sending and await self.inbox.take_back(self.thread_id, number)

    async def move_queued(self, number: int, thread_id: str) -> int | None:
        """Let it wait in another thread, in one step; its number there, None where it waited here no more."""
        async with self._turn:
            is_sent = number == self._sending
            return None if is_sent else await self.inbox.hand_over(self.thread_id, number, thread_id)

    @asynccontextmanager
    async def oldest(self) -> AsyncIterator[tuple[int, str] | None]:
        """The message that is sent in this block, and cannot be taken back meanwhile; None where none waits."""
        async with self._turn:
            waiting = await self.inbox.waiting(self.thread_id)
            first = waiting[0] if waiting else None
            self._sending = None if first is None else first[0]
        try:
            yield first
        finally:
            self._sending = None

    @asynccontextmanager
    async def sending(self, number: int) -> AsyncIterator[None]:
        """This message is sent in the block, and cannot be taken back meanwhile."""
        self._sending = number
        try:
            yield
        finally:
            self._sending = None


@dataclass(frozen=True, slots=True)
class Turns:
    """What may be done with a thread as it stands."""

    thread: Thread
    parts: SessionDependencies
    drive: GraphRunner
    queue: MessageQueue
    prompting: PromptHooks

    async def start(self) -> TurnResult:
        """See `Session.start`."""
        with self.prompting.ahead():
            position = await self._greeted()
        await self.parts.shells.reattach(self.thread.thread_id)
        if position.at_rest:
            return await self.drive.rest("done", position.values)
        if position.waits_for_model:
            return await self.drive.rest("resumable", position.values)
        self.parts.bus.publish(TurnStarted())
        return await self.drive.run(self.parts.run.resume)

    async def _greeted(self) -> ThreadSnapshot:
        """Where the thread stands, once that was told and its hooks were asked."""
        position = await self.parts.run.position()
        self.drive.earlier = await load_journal_facts(self.thread.thread_id, position.values, self.parts.journal)
        self.parts.bus.publish(
            SessionOpened(
                self.thread.thread_id,
                position.checkpoint_id,
                str(self.thread.workspace),
                self.parts.models.label,
                self.drive.mode,
            )
        )
        await self.prompting.started(is_new=not position.exists, mode=self.drive.mode)
        return position

    async def send(self, text: str, attachment: str = "") -> TurnResult:
        """See `Session.send`."""
        with self.prompting.ahead():
            position = await self.ready()
            if not self.prompting.is_wanted:
                rest = await self._send(position, text, None, attachment)
                return rest or await self._kept(text)
            # A hook may take its time: what was entered is on disk before one sees it.
            number = await self.queue.add(text)
            async with self.queue.sending(number):
                return await self._send_kept(position, number, text, attachment)

    async def send_queued(self, attachment: str = "") -> TurnResult | None:
        """See `Session.send_queued`."""
        async with self.queue.oldest() as oldest:
            if oldest is None:
                return None
            with self.prompting.ahead():
                self._refuse_open_questions()
                position = await self.parts.run.position()
                if position.open_nodes != ("__start__",):
                    number, text = oldest
                    return await self._send_kept(await self.ready(), number, text, attachment)
        # The last life died between storing a message and taking it in: that one goes first, and whole.
        return await self.continue_turn()

    async def continue_turn(self) -> TurnResult:
        """See `Session.continue_turn`."""
        self._refuse_open_questions()
        position = await self.parts.run.position()
        if not position.at_rest:
            self.drive.go_beyond_limit()
            self.parts.bus.publish(TurnStarted())
            return await self.drive.run(self.parts.run.resume)
        if turn_outcome(position.values) in ("limit", "stopped"):
            self.parts.bus.publish(TurnStarted())
            return await self._begin({})
        return await self.drive.rest("done", position.values)

    async def run_task(self, text: str, *, budget_reset: bool) -> TurnResult:
        """See `Session.work_on`."""
        position = await self.parts.run.position()
        if not position.exists:
            return await self.send(text)
        if position.at_rest:
            if budget_reset and (position.values.get("turn") or {}).get("shared"):
                return await self.continue_turn()
            return await self.drive.rest(turn_outcome(position.values), position.values)
        rest = await self.start()
        goes_on = rest.status == "resumable" or (budget_reset and rest.is_shared)
        return await self.continue_turn() if goes_on else rest

    async def _send_kept(
        self, position: ThreadSnapshot, number: int, text: str, attachment: str = ""
    ) -> TurnResult:
        """Send a message of the inbox, which is gone from there when it was sent, or must not be."""
        thread_id = self.thread.thread_id
        try:
            said = await self.prompting.asked(text, self.drive.mode)
        except MessageBlocked:
            await self.parts.inbox.take_back(thread_id, number)
            raise
        brought = "\n\n".join(filter(None, (attachment, said)))
        rest = None if said is None else await self._send(position, text, f"inbox-{number}", brought)
        if rest is None:
            return await self._unsent()
        await self.parts.inbox.take(thread_id, number)
        return rest

    async def _kept(self, text: str) -> TurnResult:
        await self.queue.add(text)
        return await self._unsent()

    async def _unsent(self) -> TurnResult:
        """No turn of a message began, which waits: what the one before came to is no answer to it."""
        return await self.drive.rest("stopped", {})

    async def _send(
        self, position: ThreadSnapshot, text: str, message_id: str | None, attachment: str = ""
    ) -> TurnResult | None:
        """Send a message; None where it was stopped before its turn began."""
        messages: list[Any] = [] if position.exists else [SystemMessage(self.parts.instructions())]
        words = printable(text)
        said = await self.parts.mentions.told(words, self.drive.scope)
        brought: dict[str, Any] = {"images": list(said.images)} if said.images else {}
        if self.prompting.is_stopped:
            return None
        whole = printable("\n\n".join(filter(None, (said.text, attachment, self.prompting.take_greeting()))))
        if whole != words:
            brought[TYPED] = len(words)
        messages.append(HumanMessage(whole, id=message_id, additional_kwargs=brought))
        self.parts.bus.publish(TurnStarted(text))
        for note in said.notes:
            self.parts.bus.publish(WarningIssued(note))
        return await self._begin({"messages": messages})

    async def ready(self) -> ThreadSnapshot:
        """Where a new turn may begin; a turn that only waits for the model is ended first.

        Raises:
            UsageError: questions or calls are open.
        """
        self._refuse_open_questions()
        position = await self.parts.run.position()
        if position.waits_for_model or self.drive.can_cancel_pending or _has_ended(position):
            await self.drive.cancel_pending()
            return position
        if not position.at_rest:
            raise UsageError(
                f"thread {self.thread.thread_id} is not at rest; what is open is settled first: "
                f"`graph-agent resume {self.thread.thread_id}`"
            )
        return position

    def _refuse_open_questions(self) -> None:
        if self.drive.open:
            waiting = ", ".join(self.drive.open)
            raise UsageError(
                f"thread {self.thread.thread_id} waits for answers about {waiting}; answer or stop the turn first"
            )

    async def _begin(self, update: dict[str, Any]) -> TurnResult:
        self.prompting.turn_begins()
        turn = {"steps": 0, "outcome": "", "usage": {}}
        return await self.drive.run(
            lambda life: self.parts.run.begin({"turn": turn, "mode": self.drive.stored_mode, **update}, life)
        )


def _has_ended(position: ThreadSnapshot) -> bool:
    """Whether the turn has come to its end, or is a compaction that begins, and its last step is to be taken in."""
    turn = position.values.get("turn") or {}
    return not position.open_nodes and bool(turn.get("outcome") or COMPACT_ONLY in turn)
