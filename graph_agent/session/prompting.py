"""What the user's hooks say about a session and its messages, before the model hears of them. Sends nothing."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator

from graph_agent.ports.hooks import Hooks

__all__ = ["Prompting"]


class Prompting:
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
        return self._hooks.reads_messages

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
