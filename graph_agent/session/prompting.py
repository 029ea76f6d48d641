"""What the user's hooks say about a session and its messages, before the model hears of them. Sends nothing."""

import asyncio
from collections.abc import Coroutine

from graph_agent.ports.hooks import Hooks

__all__ = ["Prompting"]


class Prompting:
    """The hooks of one session that are no part of a turn; whoever stops the turn stops them."""

    def __init__(self, hooks: Hooks, thread_id: str) -> None:
        self._hooks = hooks
        self._thread_id = thread_id
        self._greeting = ""
        self._running: asyncio.Task[str] | None = None

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

    def stop(self) -> bool:
        """Whether a hook ran, which ends now."""
        if self._running is None:
            return False
        self._running.cancel()
        return True

    async def _said(self, hooks: Coroutine[object, object, str]) -> str | None:
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
