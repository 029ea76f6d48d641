"""Messages that wait until a held thread is at rest: queued, taken back, or sent. Runs no turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from graph_agent.graph.history import printable
from graph_agent.ports import Inbox

__all__ = ["Queue"]


@dataclass(slots=True)
class Queue:
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

    async def take_back(self, number: int) -> bool:
        """Whether it still waited, and is gone now: a message is taken back or sent, never both."""
        async with self._turn:
            return number != self._sending and await self.inbox.take_back(self.thread_id, number)

    async def hand_over(self, number: int, thread_id: str) -> int | None:
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
