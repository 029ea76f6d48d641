"""The interactive chat: read a message, run the turn, ask what is pending, and repeat.

Leaving is safe at any moment: everything is in the thread on disk, and the chat keeps nothing but the screen.
"""

import asyncio
import contextlib
import errno
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never, cast

from rich.console import Console
from rich.text import Text

from graph_agent.app.reader import read_database
from graph_agent.calls import ToolCallInfo, ended_event
from graph_agent.cli.chat.command_table import CYCLED_MODES, is_command, parse_command
from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.chat.slash_commands import ChatAction, QuitChat, SlashCommands
from graph_agent.cli.chat.turn_runner import (
    FAILED,
    TurnRunner,
    format_background,
    format_result,
    format_status,
    has_fresh_budget,
)
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.headless.report import resume_lines
from graph_agent.cli.prompts.dialogs import choose_model, thread_menu
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, TakeBack, Terminal
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.session_target import Target, resolve_target
from graph_agent.cli.supervisor import catch_signals
from graph_agent.config.paths import own_command, runnable_hints
from graph_agent.errors import AgentError, MessageBlocked, NothingYet, UnknownId, UsageError
from graph_agent.events import (
    Event,
    EventBus,
    MessageAdded,
    ModelMessage,
    ServerChanged,
    ToolCallFinished,
    TurnStarted,
)
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.ports.stored_text import plain_text
from graph_agent.session.turn_result import TurnResult
from graph_agent.wording import escape, format_count

if TYPE_CHECKING:
    from graph_agent.cli.render.themes import ThemeName
    from graph_agent.session.session import Session

__all__ = ["Chat", "ChatOptions", "farewell", "show_recent"]

_KEPT_FLAGS = (
    *("agent", "db", "effort", "no_stream", "notify", "max_steps", "max_tokens", "max_cost", "add_dirs"),
)
"""They hold for whatever thread the chat switches to."""
_RECENT_TURNS, _RECENT_MESSAGES = 2, 200


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What a chat starts with."""

    target: Target
    """The first thread."""
    open: "Callable[[Target, EventBus], Awaitable[Session]]"
    """Opens a thread with a bus that gets all its events."""
    database: Path
    introduction: Callable[[], Sequence[str]] = tuple
    """Lines about the model, computed once everything is loaded."""
    status_items: Callable[[], Sequence[str]] = tuple
    """The setting `status_line`, read once everything is loaded."""
    set_theme: "Callable[[ThemeName | None], ThemeName]" = lambda name: name or "auto"
    """See `SlashCommands.set_theme`."""


class Chat:
    """One chat in one terminal, from the first prompt to the exit code."""

    def __init__(
        self, terminal: Terminal, console: Console, options: ChatOptions, queue: InputQueue | None = None
    ) -> None:
        self._terminal = terminal
        self._console = console
        self._options = options
        self._display = TurnDisplay(console)
        self._session: Session | None = None
        self._turns = TurnRunner(terminal, self._display, queue)
        self._turns.show_tasks = self._show_tasks
        self._queue = self._turns.input_queue
        self._programs = UserPrograms(terminal, self._display)
        self._servers: dict[str, ServerChanged] = {}
        """The newest state of each MCP server of the present session."""
        self._exit_code: ExitCode | None = None
        """Set by the signal that ends the chat."""
        self._sends_queued = True
        """Whether the last turn ended so that the next queued message is sent."""
        self._shows_sent = False
        """Whether the message that is being sent has not been on the screen yet."""
        self._turn_count = 0
        self._sandbox = ""
        self._storing_mode: asyncio.Future[None] | None = None
        self._opening: asyncio.Future[Session] | None = None
        """The first session while it is being opened."""
        self._leaving = asyncio.Event()
        """Set if the chat is to end before that session is open."""
        self._is_empty = True
        """Whether nothing was said in the present thread."""

    async def run(
        self,
        first: asyncio.Task[str | None] | None = None,
        loaded: asyncio.Future[None] | None = None,
        ended: ExitCode | None = None,
    ) -> int:
        """Chat until the person leaves or a signal ends it; `first` is a message that is being typed already.

        Where something else comes first (what was entered while the chat loaded, the questions of an existing
        thread), it is typed until `loaded` is set.

        Args:
            ended: how the chat ends as soon as what was entered is stored; None where nothing ends it.
        """
        self._exit_code = ended
        if ended is not None:
            self._leaving.set()
        talking = asyncio.create_task(self._talk(first, loaded))

        def end(code: ExitCode) -> None:
            self._exit_code = code
            if self._opening is None:
                talking.cancel()
            else:
                self._leaving.set()

        with catch_signals(end, signal.SIGTERM, signal.SIGHUP):
            try:
                await talking
            except (InputInterrupted, InputClosed, QuitChat):
                self._show_pending()
            except asyncio.CancelledError:
                if self._exit_code is None:
                    raise
                return await self._suspend(self._exit_code)
            except OSError as error:
                if error.errno != errno.EIO:  # the terminal is gone
                    raise
                return await self._suspend(ExitCode.HANGUP)
            finally:
                await self._close()
        return self._turns.exit_code

    async def _close(self) -> None:
        """Close the session, and say how to resume the thread, unless nothing was said in it."""
        if (session := self._session) is None:
            return
        count = 0
        with contextlib.suppress(AgentError):
            count = len(await session.queued())
        if count or not self._is_empty:
            with contextlib.suppress(OSError):
                sys.stderr.writelines(f"{line}\n" for line in farewell(session.thread_id, count))
        await session.close()

    async def _talk(self, first: asyncio.Task[str | None] | None, loaded: asyncio.Future[None] | None) -> None:
        await self._begin(first, loaded)
        while (current := self._session) is not None:
            if command := await self._queue.due_command(current, in_order=self._sends_queued):
                self._show_entered(command)
                await self._handle(current, command)
            elif self._turns.pending or not (self._sends_queued and await self._send_queued(current)):
                take_back = await self._announce_queued(current)
                change = asyncio.ensure_future(self._change_elsewhere(current))
                text = await self._terminal.message(take_back, change)
                if self._turns.pending and not (text or "").strip():
                    await self._ask_again(current)
                elif text is not None:
                    # Enter or /now alone sends what is queued.
                    self._sends_queued = self._sends_queued or text.strip() in ("", "/now")
                    await self._handle(current, text)

    async def _begin(self, first: asyncio.Task[str | None] | None, loaded: asyncio.Future[None] | None) -> None:
        """Open the first thread; what was entered meanwhile is queued by then."""
        session, line = await self._open_first(first, loaded)
        # A message may be queued behind others, and the person wants an answer now.
        has_messages = bool(self._queue.unsent())
        await self._enter(session, self._options.target)
        self._sends_queued = self._sends_queued or has_messages
        self._queue.announce(is_first_due=not self._turns.pending)
        if line:
            await self._handle(session, line)

    async def _change_elsewhere(self, session: "Session") -> None:
        """Return when another process has queued a message, or answered a question that is left open here."""
        known = [] if self._sends_queued else await session.queued()
        while True:
            await asyncio.sleep(ANSWER_POLL_S)
            if self._turns.pending:
                if await session.answers_from_others():
                    return
            elif await session.queued() != known:
                return

    async def _ask_again(self, session: "Session") -> None:
        """Ask the questions that were left open, and continue once they are answered."""
        await self._finish(session, await self._turns.run(session, session.proceed()))

    async def _open_first(
        self, first: asyncio.Task[str | None] | None, loaded: asyncio.Future[None] | None
    ) -> "tuple[Session, str]":
        """The session, and the line that was entered once it was open; empty where something else comes first.

        If the chat is to end before that, it ends once what was entered is stored.
        """
        target = self._options.target
        flags = {**target.flags, "when_held": self._queue.begin_storing, "sends_prompt": not target.exists}
        self._opening = opening = asyncio.ensure_future(self._open(replace(target, flags=flags)))
        left = asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait({opening, left, *filter(None, (first,))}, return_when=asyncio.FIRST_COMPLETED)
            if left.done() or (first is not None and first.done()):
                await self._leave_early(opening, first)
            self._session = session = await opening
            self._opening = None
            # The line below the prompt must never wait for it.
            self._sandbox = (await asyncio.to_thread(lambda: session.sandbox)).label
            self._turns.status_items = self._options.status_items()
            self._terminal.status = self._status
            self._terminal.cycle_mode = self._cycle_mode
            self._terminal.show(self._introduce)
            await self._queue.store_early(session)
            self._terminal.early = None
            if loaded is not None and not loaded.done() and (self._queue.has_lines or target.exists):
                loaded.set_result(None)
            line = (None if first is None else await first) or ""
            if not self._queue.has_lines:
                return session, line
            if line:  # It was entered just before its prompt ended.
                self._queue.enter_early(line)
                await self._queue.store_early(session)
            return session, ""
        finally:
            tasks = [task for task in (opening, first, left) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._session is None and not opening.cancelled() and opening.exception() is None:
                await opening.result().close()

    async def _leave_early(
        self, opening: "asyncio.Future[Session]", first: asyncio.Task[str | None] | None
    ) -> None:
        """Store what was entered, then leave as the signal or the person wants."""
        await self._queue.wait_until_stored(opening)
        if opening.done():
            await self._queue.store_early(await opening)
        if self._exit_code is not None:
            raise asyncio.CancelledError
        if first is not None:
            first.result()

    async def _open(self, target: Target) -> "Session":
        self._servers.clear()
        bus = EventBus()
        bus.subscribe(self._turns.show_event)
        bus.subscribe(self._on_event)
        session = await self._options.open(target, bus)
        self._is_empty = not target.exists
        return session

    async def _enter(self, session: "Session", target: Target, *, shows_recent: bool = True) -> None:
        """What comes before any prompt: the last messages, interrupted calls, pending questions."""
        if target.exists and shows_recent:
            with contextlib.suppress(NothingYet):
                show_recent(self._options.database, session.thread_id, self._display)
            if target.last_run:
                self._say(target.last_run, "bold")
        if session.model_name is None:
            await choose_model(session, self._terminal, self._say)
        await self._finish(session, await self._turns.run(session, session.start()))

    async def _announce_queued(self, session: "Session") -> TakeBack | None:
        """Say how many messages are queued; returns what takes the last one back, None where none is."""
        count = 0 if self._sends_queued else len(await session.queued())
        if not count:
            return None
        self._say(f"{format_count(count, 'message')} queued: Enter to send, Up to edit the last")
        return lambda: self._queue.take_back(session)

    async def _send_queued(self, session: "Session") -> bool:
        """Send the oldest queued message; False where none is queued and none was entered meanwhile."""
        self._shows_sent = True
        try:
            sent = await self._turns.run(session, session.send_queued(self._programs.shared_output))
        except MessageBlocked as refusal:
            self._say(str(refusal))
            return True
        finally:
            self._shows_sent = False
        if sent is not None:
            await self._finish(session, sent)
        return sent is not None or self._turns.had_input

    async def _handle(self, session: "Session", text: str) -> None:
        """One message or slash command."""
        if not text.strip():
            return
        action: ChatAction | None = ChatAction("send", text)
        if is_command(text):
            options = self._options
            commands = SlashCommands(
                session, self._console, options.database, self._programs, self._servers, options.set_theme
            )
            action = await commands.run(text)
        if action is None:
            return
        match action.kind:
            case "send" if await self._must_wait(session):
                is_urgent = (parse_command(text) or ("",))[0] == "now"
                await self._queue.enter(session, action.text, is_urgent=is_urgent)
                await self._resume_queue(session)
            case "send":
                await self._work(session, session.send(action.text, self._programs.shared_output))
            case "compact":
                await self._work(session, session.compact())
            case "retry":
                await self._retry(session)
            case "switch" | "resume" | "rewind" | "tasks":
                await self._leave(session, action)
            case _ as never:
                assert_never(never)

    async def _must_wait(self, session: "Session") -> bool:
        """Whether a message has to wait for queued ones, or for questions that are left open."""
        return bool(self._turns.pending or (not self._sends_queued and await session.queued()))

    async def _resume_queue(self, session: "Session") -> None:
        self._sends_queued = True
        if self._turns.pending:
            await self._ask_again(session)

    async def _leave(self, session: "Session", action: ChatAction) -> None:
        """Continue in another thread, or in another state of this one."""
        if action.kind == "tasks":
            if thread := await self._show_tasks(session):
                await self._switch(session, thread)
        elif action.kind == "switch":
            await self._switch(session, action.text or None)
        elif action.kind == "resume":
            await self._resume(session, action.text)
        else:
            await self._rewind(session, action.text)

    async def _work(self, session: "Session", work: Coroutine[Any, Any, TurnResult]) -> None:
        try:
            await self._finish(session, await self._turns.run(session, work))
        except (UsageError, MessageBlocked) as refusal:
            self._say(str(refusal))

    async def _retry(self, session: "Session") -> None:
        turns = self._turn_count
        try:
            result = await self._turns.run(session, session.continue_turn())
            result = await self._turns.resolve(session, result)
        except UsageError as refusal:
            self._say(str(refusal))
            return
        if self._turn_count == turns:
            self._say("There is nothing to retry: every turn has an answer.")
        else:
            self._show_result(result)

    async def _switch(self, left: "Session", thread: str | None) -> None:
        """Continue in another thread; this one is kept until the other is open."""
        was_empty = self._is_empty
        try:
            target = await asyncio.to_thread(_switch_target, self._options.target, thread, left)
            self._session = session = await self._open(target)
        except AgentError as failure:
            self._say(str(failure))
            return
        await self._queue.follow(left, session.thread_id)
        is_kept = not was_empty or await left.queued()
        await left.close()
        if is_kept:
            self._say(f"Return to the previous thread with /resume {left.thread_id}", "dim")
        await self._enter(session, target)

    async def _resume(self, left: "Session", thread: str) -> None:
        """Continue in the named thread, or in one that the person chooses."""
        if not thread:
            menu = await asyncio.to_thread(thread_menu, self._options.database, besides=left.thread_id)
            picked = await self._terminal.choose(menu) if menu.rows else None
            if picked is None:
                self._say("There is no other thread yet." if not menu.rows else "Nothing was changed.")
                return
            thread = picked.key
        await self._switch(left, thread)

    async def _rewind(self, left: "Session", arguments: str) -> None:
        """Rewind the thread, which is released meanwhile, and reopen it; if that fails, the chat ends."""
        # with the views of a command of its own
        from graph_agent.cli.chat.read_commands import choose_rewind, rewind_from_chat

        database = self._options.database
        try:
            order = await choose_rewind(database, left.thread_id, arguments, self._terminal)
        except UsageError as refusal:
            self._say(str(refusal))
            return
        if order.begins_anew:
            text = f"The conversation starts again in a new thread; this one is kept as thread {left.thread_id}."
            files = "" if order.request is None else " The files are rewound here:"
            self._say(f"{text}{files}", "dim")
        self._session = None
        await left.close()
        is_done = order.request is None
        try:
            if order.request is not None:
                is_done = await rewind_from_chat(database, order.request, self._turns.confirm)
        except AgentError as failure:
            self._say(str(failure))
        if is_done:
            self._terminal.begin_with(order.message)
        thread_id = None if is_done and order.begins_anew else left.thread_id
        target = _new_target(self._options.target, left, thread_id)
        self._session = session = await self._open(target)
        # A declined rewind leaves the conversation as it is on the screen.
        await self._enter(session, target, shows_recent=is_done)

    async def _finish(self, session: "Session", result: TurnResult) -> None:
        """Resolve what is pending after a turn and show how it ended."""
        self._show_result(await self._turns.resolve(session, result))

    def _show_result(self, result: TurnResult) -> None:
        has_failed = result.status in FAILED or (result.status == "stopped" and not self._turns.has_new_input)
        self._sends_queued = not has_failed
        for text, style in format_result(result, was_asked=has_fresh_budget(result)):
            self._say(text, style)

    def _on_event(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        if isinstance(event, ServerChanged):
            self._servers[event.name] = event
        elif isinstance(event, TurnStarted):
            self._turn_count += 1
            self._is_empty = False
            if event.text:
                self._programs.forget_shared()
            if self._shows_sent and event.text:
                self._show_entered(event.text)
            self._shows_sent = False

    def _show_entered(self, line: str) -> None:
        """Show a line whose turn has come as it was entered."""
        self._display(0, MessageAdded(line))

    async def _show_tasks(self, session: "Session") -> str:
        # with the views of a command of its own
        from graph_agent.cli.chat.read_commands import show_tasks

        def say(text: str) -> None:
            self._terminal.show(lambda: self._say(text, "dim"))

        return await show_tasks(session, self._terminal, self._options.database, say)

    def _introduce(self) -> None:
        for line in self._options.introduction():
            self._say(line, "dim")

    def _say(self, text: str, style: str = "yellow") -> None:
        self._display.line(safe_text(runnable_hints(text), style))

    def _status(self) -> str:
        session = self._session
        if session is None:
            return ""
        turns = self._turns
        mark = f"{self._terminal.vi_mark} " if self._terminal.vi_mark else ""
        width = self._console.width - len(mark)
        items = [*turns.status_items, "background"] if turns.status_items else ()
        load = {"background": format_background(session.background_count), **turns.load()}
        return mark + format_status(session, self._sandbox, load, width, items)

    def _cycle_mode(self) -> None:
        """Choose the next of the modes that people switch between; the status line shows it."""
        session, modes = self._session, CYCLED_MODES
        if session is not None and session.mode != "bypassPermissions":
            position = modes.index(session.mode) if session.mode in modes else -1
            session.mode = modes[(position + 1) % len(modes)]
            self._storing_mode = asyncio.ensure_future(self._store_mode(session))

    async def _store_mode(self, session: "Session") -> None:
        try:
            await session.change_mode(session.mode)
        except AgentError as failure:
            self._say(str(failure))

    async def _suspend(self, code: ExitCode) -> int:
        """Ended by a signal or a lost terminal: interrupt what runs so that a later run can resume it."""
        if self._session is not None:
            await self._session.shut_down()
        if self._turns.running is not None:
            await asyncio.gather(self._turns.running, return_exceptions=True)
        with contextlib.suppress(OSError):
            self._display.finish()
        return code

    def _show_pending(self) -> None:
        count = self._turns.pending
        if count and self._turns.exit_code is ExitCode.APPROVALS_PENDING:
            are = "is" if count == 1 else "are"
            self._say(f"{format_count(count, 'approval')} {are} still pending; nothing was run.")
        elif count:
            self._say(f"{format_count(count, 'call')} still {'needs' if count == 1 else 'need'} your decision.")


def farewell(thread_id: str, queued: int) -> Iterator[str]:
    """The lines for a person who leaves a thread with this many queued messages; safe to print."""
    if queued:
        are = "is" if queued == 1 else "are"
        yield f"{format_count(queued, 'queued message')} {are} kept, and sent when you resume the thread."
    # Not folded: a terminal copies a line that it wraps itself as one.
    yield from map(escape, resume_lines(thread_id))


def show_recent(database: Path, thread_id: str, display: TurnDisplay) -> None:
    """Show the last turns with their tool results as they were shown when they happened."""
    with read_database(database) as reader:
        recent = reader.recent(thread_id, _RECENT_MESSAGES, turns=_RECENT_TURNS)
        if recent.earlier:
            count = format_count(recent.earlier, "earlier message")
            display.line(Text(f"… {count}: /inspect or `{own_command()} threads show`", "dim"))
        names: dict[str, str] = {}
        for number, entry in enumerate(recent.entries):
            body, text = entry.body, plain_text(entry.body.get("content"))
            names |= {str(call.get("id")): str(call.get("name")) for call in body.get("tool_calls") or ()}
            match entry.role:
                case "user":
                    display(number, MessageAdded(text))
                case "assistant":
                    display(number, ModelMessage(text))
                case "tool":
                    call_id = str(body.get("tool_call_id", ""))
                    ended = ToolCallFinished(call_id, names.get(call_id, "tool"), "success", output=text)
                    with contextlib.suppress(UnknownId):  # A thread of another program has no call log.
                        record = reader.call(thread_id, call_id).record
                        command = record["arguments"].get("command")
                        # Its summary says by now how it ended.
                        summary = f"$ {command}" if isinstance(command, str) else record.get("summary", "")
                        ended = ended_event(cast("ToolCallInfo", {**record, "summary": summary}))
                    display(number, ended)


def _switch_target(target: Target, thread: str | None, left: "Session") -> Target:
    """A new thread like the one left, or another one with a mode and folder of its own.

    Raises:
        UnknownId: there is no such thread.
        UsageError: it is the current thread.
    """
    if thread is None:
        return _new_target(target, left)
    found = resolve_target(_kept_flags(target, left), workspace=None, thread=None, resume=thread)
    if found.thread_id == left.thread_id:
        raise UsageError(f"You are already in thread {left.thread_id}.")
    return found


def _new_target(target: Target, left: "Session", thread_id: str | None = None) -> Target:
    """The same thread, or a new one, in the folder and mode of the session that was left."""
    flags = {**_kept_flags(target, left), "mode": left.mode}
    return Target(left.workspace, thread_id, exists=thread_id is not None, flags=flags)


def _kept_flags(target: Target, left: "Session") -> dict[str, Any]:
    flags = {name: target.flags[name] for name in _KEPT_FLAGS if name in target.flags}
    model = {"thread": left.thread_id, "name": left.model_name}
    return {**flags, "model_left": model} if left.model_name else flags
