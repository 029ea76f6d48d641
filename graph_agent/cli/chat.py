"""The interactive chat: read a message, run the turn, ask what is open, again. Nothing here is kept but the screen.

Leaving is always safe: whatever instant it happens at, the thread on disk knows how to go on.
"""

import asyncio
import contextlib
import errno
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from graph_agent.cli.ask.asking import Asking, StopTurn
from graph_agent.cli.ask.terminal import Interrupted, Left, Terminal
from graph_agent.cli.conversation import Conversation, Opener
from graph_agent.cli.escape import escape
from graph_agent.cli.exits import Exit, exit_for
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.story import Story
from graph_agent.cli.report import resume_lines
from graph_agent.cli.slash import Quit, Slash, is_command
from graph_agent.cli.supervise import signals_caught
from graph_agent.errors import NothingYet, UsageError
from graph_agent.events import EventBus
from graph_agent.session.api import Rest

__all__ = ["Chat", "Setting"]

_TICK_SECONDS = 0.25
_WHOLE_ID = 20
_FAILED = ("model_error", "failed", "broken_off")
_Rested = TypeVar("_Rested", Rest, Rest | None)
_HINTS = {
    "limit": "The step limit of the turn is reached; /retry goes on.",
    "model_error": "The model did not answer; /retry asks it again.",
    "broken_off": "The last turn was broken off before the model answered; /retry asks it again.",
    "stopped": "Stopped.",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a chat begins with."""

    database: Path
    message: str | None = None
    """The first message, given on the command line."""
    resumes: bool = False
    """The thread was there before: what is open on it comes before any prompt."""
    last_life: str = ""
    """Who held an unfinished thread last and how that ended; empty where nothing was left unfinished."""
    introduction: Callable[[], Sequence[str]] = tuple
    """Lines about the model, asked for once everything is loaded."""


class Chat:
    """One chat in one terminal, from the first prompt to the exit code."""

    def __init__(self, opener: Opener, terminal: Terminal, console: Console, setting: Setting) -> None:
        self._opener = opener
        self._terminal = terminal
        self._console = console
        self._setting = setting
        self._story = Story(console)
        self._session: Conversation | None = None
        self._running: asyncio.Task[Any] | None = None
        self._ending: Exit | None = None
        self._code = Exit.DONE

    async def run(self, first: asyncio.Task[str] | None = None) -> int:
        """Talk until the person leaves or a signal ends it; `first` is a message that is being typed already."""
        talking = asyncio.create_task(self._talk(first))

        def end(code: Exit) -> None:
            self._ending = code
            talking.cancel()

        with signals_caught(end, signal.SIGTERM, signal.SIGHUP):
            try:
                await talking
            except (Interrupted, Left, Quit):
                return self._left()
            except asyncio.CancelledError:
                if self._ending is None:
                    raise
                return await self._suspended(self._ending)
            except OSError as gone:
                if gone.errno != errno.EIO:
                    raise
                return await self._suspended(Exit.HANGUP)
            finally:
                self._tell_resume()
                if self._session is not None:
                    await self._session.close()
        return self._code

    async def _talk(self, first: asyncio.Task[str] | None) -> None:
        session, text = await self._opened(first)
        self._session = session
        if self._setting.resumes:
            self._recall(session)
        rest = await self._settled(session, await self._turn(session, session.start()))
        self._tell(rest)
        if rest.status != "broken_off":
            await self._send_queued(session)
        while True:
            await self._take(session, await self._terminal.message() if text is None else text)
            text = None

    async def _opened(self, first: asyncio.Task[str] | None) -> tuple[Conversation, str | None]:
        """The session and the first message, whichever is there sooner."""
        bus = EventBus()
        opening = asyncio.ensure_future(self._opener(bus))
        try:
            if first is not None:
                await asyncio.wait({opening, first}, return_when=asyncio.FIRST_COMPLETED)
                if first.done():
                    first.result()
            self._session = session = await opening
            bus.subscribe(self._story)
            self._terminal.status.become(self._status)
            if first is None or first.done():
                self._introduce()
            else:
                await self._terminal.above(self._introduce)
            return session, self._setting.message if first is None else await first
        finally:
            await _cancelled(opening, first)

    async def _take(self, session: Conversation, text: str) -> None:
        """One message or slash command."""
        if not text.strip():
            return
        if is_command(text):
            slash = Slash(session, self._console, self._setting.database)
            if not slash.run(text):
                return
            work = session.continue_turn()
        else:
            work = session.send(text)
        try:
            rest = await self._settled(session, await self._turn(session, work))
        except UsageError as refusal:
            self._story.line(marked(str(refusal), "yellow"))
            return
        self._tell(rest)
        if rest.status not in _FAILED:
            await self._send_queued(session)

    async def _send_queued(self, session: Conversation) -> None:
        """Send what was typed while a turn ran, one message a turn; a failed turn leaves the rest waiting."""
        while (sent := await self._turn(session, session.send_queued())) is not None:
            rest = await self._settled(session, sent)
            self._tell(rest)
            if rest.status in _FAILED:
                return

    async def _settled(self, session: Conversation, rest: Rest) -> Rest:
        """Ask what is open until nothing is."""
        while rest.status in ("awaiting_approval", "interrupted"):
            asking = Asking(session, self._terminal, self._story, self._console.width)
            try:
                await asking.ask_all(rest.questions)
            except StopTurn:
                rest = await self._turn(session, session.stop())
                continue
            except (Interrupted, Left):
                left = [item for item in rest.questions if item.question.call_id not in asking.answered]
                self._code = exit_for(replace(rest, questions=tuple(left)))
                raise
            rest = await self._turn(session, session.proceed())
        return rest

    async def _turn(self, session: Conversation, work: Coroutine[Any, Any, _Rested]) -> _Rested:
        """Run until the graph rests; Esc and Ctrl-C stop it, lines typed meanwhile are queued."""
        self._running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[Rest]] = []
        queueing: list[asyncio.Task[None]] = []

        def queue(line: str) -> bool:
            if is_command(line):
                return False
            if line.strip():
                queueing.append(asyncio.create_task(self._queue(session, line)))
            return True

        def stop(_code: Exit = Exit.INTERRUPTED) -> None:
            if not stopping and not running.done():
                self._story.line(Text("stopping …", "yellow"))
                stopping.append(asyncio.create_task(session.stop()))

        with signals_caught(stop, signal.SIGINT):
            async with self._terminal.watched(stop, queue):
                while not running.done():
                    await asyncio.wait({running}, timeout=_TICK_SECONDS)
                    self._story.tick()
        await asyncio.gather(*stopping, *queueing)
        self._story.rest()
        return running.result()

    async def _queue(self, session: Conversation, line: str) -> None:
        await session.queue(line)
        self._story.line(marked(f"queued: {line}", "dim"))

    def _introduce(self) -> None:
        for line in self._setting.introduction():
            self._story.line(marked(line, "dim"))

    def _recall(self, session: Conversation) -> None:
        from graph_agent.cli.recall import recent_lines  # only a resumed chat reads the database itself

        with contextlib.suppress(NothingYet):
            for line in recent_lines(self._setting.database, session.thread_id):
                self._console.print(Text.from_ansi(line), soft_wrap=True)
        if self._setting.last_life:
            self._story.line(marked(self._setting.last_life, "bold"))

    def _status(self) -> str:
        session = self._session
        if session is None:
            return ""
        # The whole id does not fit beside the model, and what is cut off is the end that the tables show.
        thread = session.thread_id if len(session.thread_id) <= _WHOLE_ID else f"…{session.thread_id[-8:]}"
        return escape(f"{session.model_label} · mode {session.mode} · thread {thread}")

    def _tell(self, rest: Rest) -> None:
        """Say how a turn ended, where that is not plain to see."""
        if rest.error:
            self._story.line(marked(rest.error, "red"))
        if hint := _HINTS.get(rest.status):
            self._story.line(Text(hint, "yellow"))

    def _left(self) -> int:
        if self._code is not Exit.DONE:
            self._story.line(Text("Left with open questions; they stay open and nothing of them runs.", "yellow"))
        return self._code

    async def _suspended(self, code: Exit) -> int:
        """Ended by a signal or a lost terminal: break off what runs so that a later life can go on from there."""
        if self._session is not None:
            await self._session.suspend()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        with contextlib.suppress(OSError):
            self._story.rest()
        return code

    def _tell_resume(self) -> None:
        if self._session is not None and self._running is not None:
            lines = "".join(f"{escape(line)}\n" for line in resume_lines(self._session.thread_id))
            with contextlib.suppress(OSError):
                sys.stderr.write(lines)


async def _cancelled(*tasks: "asyncio.Future[Any] | None") -> None:
    """Cancel what is still under way and wait until it is gone."""
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)
