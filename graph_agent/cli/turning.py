"""Runs a turn while the keyboard is watched: Esc and Ctrl-C stop it, lines typed meanwhile are kept for later."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from rich.text import Text

from graph_agent.cli.ask.keys import Put
from graph_agent.cli.ask.terminal import Terminal
from graph_agent.cli.codes import Exit
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.meanwhile import Meanwhile
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.story import Story
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
        self.meanwhile = Meanwhile(self._say, terminal.remember)
        """What was typed while turns ran."""
        self.goes_on = False
        """Whether something was entered after the last turn had been stopped."""
        self.was_spoken_to = False
        """Whether something was entered while the last turn ran, or while there was none to run."""
        self._is_taking_back = False

    def tell(self, number: int, event: Event) -> None:
        """Take in an event, also one that comes while nothing runs and a line is being typed."""
        self._terminal.show(lambda: self._story(number, event))

    async def run(self, session: Conversation, work: Coroutine[Any, Any, _Rested]) -> _Rested:
        """Run until the graph rests; what is typed meanwhile waits."""
        self.running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[Rest]] = []
        self.goes_on = self.was_spoken_to = False
        entering: list[asyncio.Task[None]] = []
        story = self._story

        def enter(line: str) -> bool:
            if line.strip():
                self.goes_on = bool(stopping)
                self.was_spoken_to = True
                entering.append(asyncio.create_task(self.meanwhile.enter(session, line)))
            return True

        def back(put: Put) -> None:
            entering.append(asyncio.create_task(self._take_back(session, put)))

        def stop(_code: Exit = Exit.INTERRUPTED) -> None:
            if running.done() or not all(one.done() for one in stopping):
                return
            if not stopping:
                story.line(Text("stopping …", "yellow"))
            # A stop that came before there was anything to stop is not the last one.
            stopping.append(asyncio.create_task(session.stop()))

        with signals_caught(stop, signal.SIGINT):
            async with self._terminal.watched(stop, enter, story.typed, story.hide, back):
                while not running.done():
                    await asyncio.wait({running}, timeout=_TICK_SECONDS)
                    story.tick()
                # Not after the keyboard is let go: what is taken back comes onto the line that is typed.
                await _all_done(entering)
        await asyncio.gather(*stopping, *entering)
        story.rest()
        return running.result()

    async def _take_back(self, session: Conversation, put: Put) -> None:
        if self._is_taking_back:
            return
        self._is_taking_back = True
        try:
            if (text := await self.meanwhile.take_back(session)) is not None:
                put(text)
        finally:
            self._is_taking_back = False

    def _say(self, text: str) -> None:
        self._terminal.show(lambda: self._story.line(marked(text, "dim")))


async def _all_done(tasks: list[asyncio.Task[None]]) -> None:
    """Also those that are added while others are waited for."""
    while under_way := [task for task in tasks if not task.done()]:
        await asyncio.wait(under_way)
