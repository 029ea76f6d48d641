"""The interactive chat: read a message, run the turn, ask what is open, again. Nothing here is kept but the screen.

Leaving is always safe: whatever instant it happens at, the thread on disk knows how to go on.

What a chat begins with, and how it gets to another thread. Values only.
"""

import asyncio
import contextlib
import errno
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from graph_agent.cli.chat.conversation import Conversation, Opener, ServerStates
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.chat.slash_commands import (
    CompactThread,
    QuitChat,
    RetryTurn,
    RewindThread,
    SendMessage,
    SlashCommands,
    SwitchThread,
    is_command,
)
from graph_agent.cli.chat.turn_runner import (
    FAILED,
    PendingResolver,
    TurnRunner,
    has_fresh_budget,
    result_lines,
    status_text,
)
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.headless.report import resume_lines
from graph_agent.cli.prompts.dialogs import choose_model
from graph_agent.cli.prompts.keys import TakeBack
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.escape import escape
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.supervisor import catch_signals
from graph_agent.errors import AgentError, MessageBlocked, NothingYet, UsageError
from graph_agent.events import Event, EventBus, TurnStarted
from graph_agent.session.turn_result import TurnResult

__all__ = ["Chat", "ChatOptions", "ThreadOpening"]


@dataclass(frozen=True, slots=True)
class ThreadOpening:
    """A thread to go to."""

    opener: Opener
    resumes: bool = False
    """The thread was there before: what is open on it comes before any prompt."""
    last_life: str = ""
    """Who held an unfinished thread last and how that ended; empty where nothing was left unfinished."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a chat begins with."""

    database: Path
    elsewhere: Callable[[str | None, Conversation], ThreadOpening]
    """The thread that an id means, or for None a new one, seen from the one that is left. Reads the database.

    Raises AgentError where there is no such thread.
    """
    again: Callable[[Conversation], ThreadOpening]
    """The thread of a session that is closed, to be opened anew as it was."""
    servers: ServerStates = field(default_factory=ServerStates)
    """How the servers of tools are doing in the present thread."""
    message: str | None = None
    """The first message, given on the command line."""
    introduction: Callable[[], Sequence[str]] = tuple
    """Lines about the model, asked for once everything is loaded."""


class Chat:
    """One chat in one terminal, from the first prompt to the exit code."""

    def __init__(self, visit: ThreadOpening, terminal: Terminal, console: Console, setting: ChatOptions) -> None:
        self._visit = visit
        self._terminal = terminal
        self._console = console
        self._setting = setting
        self._story = TurnDisplay(console)
        self._session: Conversation | None = None
        self._turning = TurnRunner(terminal, self._story)
        self._settling = PendingResolver(terminal, console, self._story, self._turning)
        self._programs = UserPrograms(terminal, console)
        self._ending: ExitCode | None = None
        self._may_send_queued = True
        """Whether the last turn ended so that the next message may follow by itself."""
        self._tells_sent = False
        """Whether the message that is sent now is one the screen has not shown at a prompt."""
        self._turns, self._sandbox = 0, ""
        self._used: dict[str, Any] = {}

    async def run(self, first: asyncio.Task[str] | None = None) -> int:
        """Talk until the person leaves or a signal ends it; `first` is a message that is being typed already."""
        talking = asyncio.create_task(self._talk(first))

        def end(code: ExitCode) -> None:
            self._ending = code
            talking.cancel()

        with catch_signals(end, signal.SIGTERM, signal.SIGHUP):
            try:
                await talking
            except (InputInterrupted, InputClosed, QuitChat):
                return self._left()
            except asyncio.CancelledError:
                if self._ending is None:
                    raise
                return await self._suspended(self._ending)
            except OSError as gone:
                if gone.errno != errno.EIO:
                    raise
                return await self._suspended(ExitCode.HANGUP)
            finally:
                self._tell_resume()
                if self._session is not None:
                    await self._session.close()
        return self._settling.code

    async def _talk(self, first: asyncio.Task[str] | None) -> None:
        session, text = await self._opened(first)
        meanwhile = self._turning.meanwhile
        meanwhile.first = message = "" if text is None or is_command(text) else text
        await self._enter(session, self._visit)
        if message and not meanwhile.first:
            self._may_send_queued = True  # It waits with others, and is what the person wants now.
        elif text is not None:
            meanwhile.first = ""
            await self._take(text)
        while True:
            await self._take_next()

    async def _take_next(self) -> None:
        """What comes next: a command that was typed meanwhile, a message that waits, what is typed now."""
        session = self._session
        if session is None:
            return
        if command := await self._turning.meanwhile.due_command(session, in_order=self._may_send_queued):
            await self._take(command)
        elif not (self._may_send_queued and await self._sent_queued(session)):
            text = await self._terminal.message(await self._waiting(session))
            # Enter alone lets what waits be sent.
            self._may_send_queued = self._may_send_queued or not text.strip()
            await self._take(text)

    async def _waiting(self, session: Conversation) -> TakeBack | None:
        """Where what waits can be taken back from; None where nothing waits. It is said that it does."""
        count = 0 if self._may_send_queued else len(await session.queued())
        if not count:
            return None
        self._say(f"{count} message{'s wait' if count > 1 else ' waits'}: Enter sends, Up takes the last one back")
        return lambda: self._turning.meanwhile.take_back(session)

    async def _opened(self, first: asyncio.Task[str] | None) -> tuple[Conversation, str | None]:
        """The session and the first message, whichever is there sooner."""
        opening = asyncio.ensure_future(self._open(self._visit))
        try:
            if first is not None:
                await asyncio.wait({opening, first}, return_when=asyncio.FIRST_COMPLETED)
                if first.done():
                    first.result()
            self._session = session = await opening
            # The line below the prompt must never wait for it.
            self._sandbox = (await asyncio.to_thread(lambda: session.sandbox)).label
            self._terminal.status.become(self._status)
            self._terminal.show(self._introduce)
            return session, self._setting.message if first is None else await first
        finally:
            await _cancelled(opening, first)

    async def _open(self, visit: ThreadOpening) -> Conversation:
        bus = EventBus()
        bus.subscribe(self._turning.tell)
        bus.subscribe(self._count)
        return await visit.opener(bus)

    async def _enter(self, session: Conversation, visit: ThreadOpening) -> None:
        """What comes before any prompt: what was said, what broke off, what waits."""
        if visit.resumes:
            await self._turning.meanwhile.keep_first(session)
            self._recall(session, visit.last_life)
        if session.model_name is None:
            await choose_model(session, self._terminal, self._say)
        started = await self._turning.run(session, session.start())
        self._rested(await self._settling.settled(session, started))

    async def _take(self, text: str) -> None:
        """One message or slash command."""
        session = self._session
        if session is None or not text.strip():
            return
        setting = self._setting
        slash = SlashCommands(session, self._console, setting.database, self._programs, setting.servers)
        match await slash.run(text) if is_command(text) else SendMessage(text):
            case SwitchThread(thread=thread):
                await self._move(session, thread)
            case RetryTurn():
                await self._retry(session)
            case CompactThread():
                await self._work(session, session.compact())
            case RewindThread(wish=wish):
                await self._go_back(session, wish)
            case SendMessage(text=message):
                await self._work(session, session.send(message, self._programs.shared))

    async def _work(self, session: Conversation, work: Coroutine[Any, Any, TurnResult]) -> None:
        try:
            self._rested(await self._settling.settled(session, await self._turning.run(session, work)))
        except (UsageError, MessageBlocked) as refusal:
            self._say(str(refusal))

    async def _retry(self, session: Conversation) -> None:
        turns = self._turns
        try:
            rest = await self._settling.settled(session, await self._turning.run(session, session.continue_turn()))
        except UsageError as refusal:
            self._say(str(refusal))
            return
        if self._turns == turns:
            self._say("There is nothing to retry: no turn was left without an answer.")
        else:
            self._rested(rest)

    async def _move(self, left: Conversation, thread: str | None) -> None:
        """Go on in another thread; this one is kept until the other is open."""
        try:
            visit = await asyncio.to_thread(self._setting.elsewhere, thread, left)
            self._session = session = await self._open(visit)
        except AgentError as failure:
            self._say(str(failure))
            return
        await self._turning.meanwhile.follow(left, session.thread_id)
        await left.close()
        self._say(f"/resume {left.thread_id} goes back to the thread you left", "dim")
        await self._enter(session, visit)

    async def _go_back(self, left: Conversation, wish: str) -> None:
        """Rewind the thread, which is given back meanwhile, and open it anew; if that fails, the chat is over."""
        from graph_agent.cli.chat.read_commands import (  # with the views of a command of its own
            parse_rewind,
            rewind_from_chat,
        )

        try:
            order = parse_rewind(wish, left.thread_id)
        except UsageError as refusal:
            self._say(str(refusal))
            return
        self._session = None
        await left.close()
        try:
            await rewind_from_chat(self._setting.database, order, self._settling.agrees)
        except AgentError as failure:
            self._say(str(failure))
        visit = self._setting.again(left)
        self._session = session = await self._open(visit)
        await self._enter(session, visit)

    async def _sent_queued(self, session: Conversation) -> bool:
        """Send the oldest message typed while a turn ran; false where none was there and none came meanwhile."""
        self._tells_sent = True
        try:
            sent = await self._turning.run(session, session.send_queued(self._programs.shared))
        except MessageBlocked as refusal:
            self._say(str(refusal))
            return True
        finally:
            self._tells_sent = False
        if sent is not None:
            self._rested(await self._settling.settled(session, sent))
        return sent is not None or self._turning.was_spoken_to

    def _rested(self, rest: TurnResult) -> None:
        """Say how a turn ended, where that is not plain to see."""
        self._may_send_queued = rest.status not in FAILED and (rest.status != "stopped" or self._turning.goes_on)
        self._used = rest.thread_usage
        for text, style in result_lines(rest, was_asked=has_fresh_budget(rest)):
            self._say(text, style)

    def _count(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        if isinstance(event, TurnStarted):
            self._turns += 1
            if event.text:
                self._programs.forget_shared()
            if self._tells_sent and event.text:
                self._say(f"> {event.text.split(chr(10))[0]}", "cyan")
            self._tells_sent = False

    def _introduce(self) -> None:
        for line in self._setting.introduction():
            self._story.line(safe_text(line, "dim"))

    def _say(self, text: str, style: str = "yellow") -> None:
        self._story.line(safe_text(text, style))

    def _recall(self, session: Conversation, last_life: str) -> None:
        from graph_agent.cli.chat.conversation import recent_lines  # only a resumed chat reads the database itself

        with contextlib.suppress(NothingYet):
            for line in recent_lines(self._setting.database, session.thread_id):
                self._console.print(Text.from_ansi(line), soft_wrap=True)
        if last_life:
            self._say(last_life, "bold")

    def _status(self) -> str:
        session = self._session
        return "" if session is None else status_text(session, self._sandbox, self._used, self._console.width)

    def _left(self) -> int:
        if self._settling.code is not ExitCode.DONE:
            self._story.line(Text("Left with open questions; they stay open and nothing of them runs.", "yellow"))
        return self._settling.code

    async def _suspended(self, code: ExitCode) -> int:
        """Ended by a signal or a lost terminal: break off what runs so that a later life can go on from there."""
        if self._session is not None:
            await self._session.shut_down()
        if self._turning.running is not None:
            await asyncio.gather(self._turning.running, return_exceptions=True)
        with contextlib.suppress(OSError):
            self._story.rest()
        return code

    def _tell_resume(self) -> None:
        if self._session is not None and self._turning.running is not None:
            with contextlib.suppress(OSError):
                sys.stderr.writelines(f"{escape(line)}\n" for line in resume_lines(self._session.thread_id))


async def _cancelled(*tasks: "asyncio.Future[Any] | None") -> None:
    """Cancel what is still under way and wait until it is gone."""
    started = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)
