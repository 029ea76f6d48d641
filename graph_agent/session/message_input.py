"""Before a turn begins: the queue in which messages wait, and the user's hooks that read them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from graph_agent.ports import Inbox
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.ports.stored_text import storable
from graph_agent.ports.toolbox import Hooks

__all__ = ["MessageQueue", "PromptHooks"]


@dataclass(slots=True)
class MessageQueue:
    """The messages that wait for one thread; only the session that holds the thread sends them."""

    inbox: Inbox
    thread_id: str
    by: str
    """The name under which messages are queued."""
    _sending: set[int] = field(default_factory=set)
    _may_be_urgent: bool = False
    """Whether this process has queued an urgent message since the last look."""
    _looked_at: float = 0.0
    """When urgent messages were last looked for, on the monotonic clock."""
    _claim: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def add(self, text: str, *, is_urgent: bool = False) -> int:
        """Store a message durably; returns its number."""
        number = await self.inbox.queue(self.thread_id, storable(text), self.by, is_urgent=is_urgent)
        self._may_be_urgent = self._may_be_urgent or is_urgent
        return number

    async def mark_urgent(self) -> int:
        """Make every waiting message one for the running turn; returns how many wait."""
        count = await self.inbox.mark_urgent(self.thread_id)
        self._may_be_urgent = True
        return count

    async def waiting(self) -> list[tuple[int, str]]:
        """Number and text of each message in the order in which they are sent, without those being sent."""
        return [one for one in await self.inbox.waiting(self.thread_id) if one[0] not in self._sending]

    async def remove(self, number: int) -> bool:
        """Delete a message that still waits. A message is deleted or sent, never both."""
        async with self._claim:
            return number not in self._sending and await self.inbox.remove(self.thread_id, number)

    async def move(self, number: int, thread_id: str) -> int | None:
        """Move a message to the queue of another thread; its number there, None if it no longer waits here."""
        async with self._claim:
            if number in self._sending:
                return None
            return await self.inbox.move_to_thread(self.thread_id, number, thread_id)

    async def claim_urgent(self) -> list[tuple[int, str]]:
        """Claim the messages for the running turn until the next claim, or until `release`.

        Those of other processes are looked for a few times a second: a step may take only milliseconds, and each
        look changes threads.
        """
        now = time.monotonic()
        if not (self._sending or self._may_be_urgent) and now - self._looked_at < ANSWER_POLL_S:
            return []
        self._looked_at, self._may_be_urgent = now, False
        async with self._claim:
            urgent = await self.inbox.waiting(self.thread_id, only_urgent=True)
            waiting = {number for number, _ in urgent}
            for number in self._sending - waiting:  # They are in the history.
                await self.inbox.take(self.thread_id, number)
            self._sending = waiting
            return urgent

    async def drop(self, number: int) -> None:
        """Delete a claimed message: a hook rejects it."""
        self._sending.discard(number)
        await self.inbox.remove(self.thread_id, number)

    def release(self) -> None:
        """The turn has ended: what is not in the history waits again."""
        self._sending = set()

    @asynccontextmanager
    async def sending_oldest(self) -> AsyncIterator[tuple[int, str] | None]:
        """Claim the oldest message while the block runs: it cannot be deleted or moved. None if none waits."""
        async with self._claim:
            waiting = await self.inbox.waiting(self.thread_id)
            oldest = waiting[0] if waiting else None
            self._sending = set() if oldest is None else {oldest[0]}
        try:
            yield oldest
        finally:
            self.release()

    @asynccontextmanager
    async def sending(self, number: int) -> AsyncIterator[None]:
        """Claim this message while the block runs."""
        self._sending = {number}
        try:
            yield
        finally:
            self.release()


class PromptHooks:
    """The hooks that run before a turn begins. Stopping the turn stops them."""

    def __init__(self, hooks: Hooks, thread_id: str) -> None:
        self._hooks = hooks
        self._thread_id = thread_id
        self._greeting = ""
        self._running: asyncio.Task[str] | None = None
        self._is_before_turn = False
        self.is_stopped = False
        """The user stopped while the turn was being prepared: it must not begin."""

    @property
    def read_messages(self) -> bool:
        """Whether a hook wants to see a message before it is sent."""
        return self._hooks.has_message_hooks

    async def session_started(self, *, is_new: bool, mode: str) -> None:
        """Run the hooks for the start of the session; their output is added to the next message."""
        source = "startup" if is_new else "resume"
        self._greeting = await self._run(self._hooks.session_started(self._thread_id, source, mode)) or ""

    async def before_message(self, text: str, mode: str) -> str | None:
        """What hooks add to the message; None if the user stopped, and the message must not be sent now.

        Raises:
            MessageBlocked: a hook rejects the message.
        """
        return await self._run(self._hooks.message_submitted(self._thread_id, text, mode))

    def take_greeting(self) -> str:
        """The output of the session-start hooks, once."""
        greeting, self._greeting = self._greeting, ""
        return greeting

    @contextlib.contextmanager
    def preparing_turn(self) -> Iterator[None]:
        """While the block runs a stop is for the preparation, until `turn_begins`."""
        self._is_before_turn, self.is_stopped = True, False
        try:
            yield
        finally:
            self._is_before_turn = False

    def turn_begins(self) -> None:
        """From now on a stop is for the turn."""
        self._is_before_turn = False

    def stop(self) -> bool:
        """End a running hook and the preparation of a turn; whether no turn has begun yet."""
        self.is_stopped = self._is_before_turn
        if self._running is not None:
            self._running.cancel()
        return self._is_before_turn

    async def _run(self, hooks: Coroutine[object, object, str]) -> str | None:
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
