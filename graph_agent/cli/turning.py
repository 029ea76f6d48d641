"""Runs a turn while the keyboard is watched: Esc and Ctrl-C stop it, lines typed meanwhile are kept for later."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from rich.text import Text

from graph_agent.cli.ask.terminal import Terminal
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.exits import Exit
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.story import Story
from graph_agent.cli.slash import is_command
from graph_agent.cli.supervise import signals_caught
from graph_agent.events import Event
from graph_agent.session.api import Rest

__all__ = ["Turning"]

_TICK_SECONDS = 0.1
_Rested = TypeVar("_Rested", Rest, Rest | None)


class Turning:
    """The turns of one chat, one at a time."""

    def __init__(self, terminal: Terminal, story: Story) -> None:
        self._terminal = terminal
        self._story = story
        self.running: asyncio.Task[Any] | None = None
        """The last turn, whether it has ended or not."""
        self.later: list[str] = []
        """Commands typed while a turn ran, and messages that had to wait for an earlier one; oldest first."""

    def tell(self, number: int, event: Event) -> None:
        """Take in an event, also one that comes while nothing runs and a line is being typed."""
        self._terminal.show(lambda: self._story(number, event))

    async def run(
        self, session: Conversation, work: Coroutine[Any, Any, _Rested], *, may_queue: bool = True
    ) -> _Rested:
        """Run until the graph rests. Messages typed meanwhile are queued with the thread unless one comes first."""
        self.running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[Rest]] = []
        queueing: list[asyncio.Task[None]] = []

        def keep(line: str) -> bool:
            if is_command(line) or (line.strip() and not may_queue):
                self.later.append(line)
                self._story.line(marked(f"after this turn: {line}", "dim"))
            elif line.strip():
                queueing.append(asyncio.create_task(self._queue(session, line)))
            return True

        def stop(_code: Exit = Exit.INTERRUPTED) -> None:
            if not stopping and not running.done():
                self._story.line(Text("stopping …", "yellow"))
                stopping.append(asyncio.create_task(session.stop()))

        with signals_caught(stop, signal.SIGINT):
            async with self._terminal.watched(stop, keep, self._story.typed, self._story.hide):
                while not running.done():
                    await asyncio.wait({running}, timeout=_TICK_SECONDS)
                    self._story.tick()
        await asyncio.gather(*stopping, *queueing)
        self._story.rest()
        return running.result()

    async def _queue(self, session: Conversation, line: str) -> None:
        await session.queue(line)
        self._story.line(marked(f"queued: {line}", "dim"))
