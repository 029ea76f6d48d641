"""The keyboard side of the terminal: messages, answers, the line that is typed while a turn runs, an editor.

The terminal stays in raw mode while the chat runs, so that no key is echoed between two prompts and Ctrl-C is a key
like any other. At the prompt prompt_toolkit draws the line. While a turn runs the turn display draws it below what
runs, and on a plain terminal each change is written at the end of the line; the same keys edit it everywhere.
"""

import asyncio
import contextlib
import importlib
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cached_property
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.clipboard import InMemoryClipboard
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching, vi_insert_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from graph_agent.cli.prompts.choices import KeyLine, bind_answering, prompt_fragments
from graph_agent.cli.prompts.keyboard import (
    ALT_S,
    BREAK_LINE,
    CTRL_ENTER,
    ESCAPE_S,
    FOCUS_IN,
    FOCUS_OUT,
    EarlyLines,
    InputCancelled,
    InputClosed,
    InputInterrupted,
    Keyboard,
    Pastes,
    TakeBack,
    TurnKeys,
    bind_leaving,
    bind_loading,
    clear,
    end_of,
    ends_with_backslash,
    is_empty,
    typed_text,
    vi_mark,
)
from graph_agent.cli.prompts.menu import Menu, Picked, bind_completing, is_completed, wait_for_escape
from graph_agent.cli.prompts.terminal_output import (
    EchoedLine,
    full_reports,
    plain_input,
    prompt_style,
    reports_more,
    terminal_output,
)
from graph_agent.cli.render.themes import BACKGROUND_QUERY, Rgb, parse_background
from graph_agent.cli.views.table import is_plain_terminal, supports_escapes
from graph_agent.wording import escape

__all__ = ["InputCancelled", "InputClosed", "InputInterrupted", "TakeBack", "Terminal", "TurnKeys"]

_PROMPT_STYLE = "class:prompt"
"""A colour of its own, because blanks at the end of a plain prompt are not sent to the terminal."""
_MENU_LINES = 6


class Terminal:
    """One real terminal, as long as a chat runs in it. Lines are typed one at a time."""

    def __init__(
        self, history: History | None = None, completer: Completer | None = None, source: Input | None = None
    ) -> None:
        self.status: Callable[[], str] = str
        """The line below the prompt."""
        self.early: EarlyLines | None = None
        """Takes the lines that are entered while the chat loads; None once it has loaded."""
        self.say: Callable[[str], None] = lambda text: print(escape(text))  # noqa: T201 - the screen is all there is
        """Shows a line; the chat has a way of its own."""
        self.cycle_mode: Callable[[], None] = lambda: None
        """Shift-Tab at the prompt and during a turn."""
        self.is_focused = True
        """Until the terminal reports something else."""
        self.focused: Callable[[], None] = lambda: None
        """Called when the terminal gets the focus."""
        self.background: Rgb | None = None
        """The colour of the terminal's background, once it has answered."""
        self.background_known: Callable[[], None] = lambda: None
        self.released: Callable[[], None] = lambda: None
        """Called before the terminal is given back."""
        self._source = source or Keyboard(sys.stdin)
        if isinstance(self._source, Keyboard):
            self._source.take_report = self._take_report
        self._history = history or InMemoryHistory()
        self._completer = completer
        self._is_plain = is_plain_terminal()
        self._clipboard = InMemoryClipboard()
        self._unfinished = Document()
        """Typed, or no longer queued, and not entered: the next message begins with it."""
        self._take_back: TakeBack | None = None
        self._taking_back: asyncio.Task[None] | None = None
        self._pastes = Pastes(lambda text: self.say(text))  # noqa: PLW0108 - the chat sets its own way later
        self._turn: TurnKeys | None = None
        self._turn_line: asyncio.Task[str] | None = None
        self._deferred: list[KeyPress] = []
        """Keys of the turn that are typed again at the next prompt."""
        self._typing: PromptSession[str] | None = None
        """The session whose line is a message."""
        self._editing_mode = EditingMode.EMACS
        self._drawn: Application[Any] | EchoedLine | None = None
        """The line or menu that is drawn now."""
        self._above: list[Callable[[], None]] = []
        self._keys: KeyLine | None = None
        """The keys of the question that is asked."""
        self._was_interrupted = False
        """Whether the last question was left by Ctrl-C."""

    @contextlib.contextmanager
    def held(self, *, asks_background: bool = False) -> Iterator[None]:
        """Raw mode for as long as the chat runs; the terminal is given back as it was.

        With `asks_background` the terminal is asked for its colour; the answer is taken whenever it comes.
        """
        with self._source.raw_mode(), full_reports():
            self._take_typed_lines()
            if asks_background and reports_more():
                print(BACKGROUND_QUERY, end="", flush=True)  # noqa: T201 - for the terminal itself
            try:
                yield
            finally:
                if self._unfinished.text:  # It is for whatever reads this keyboard next.
                    store_typeahead(self._source, [KeyPress(Keys.BracketedPaste, self._unfinished.text)])
                with contextlib.suppress(OSError):
                    self.released()

    @property
    def editing_mode(self) -> EditingMode:
        """The keys that edit a message, at the prompt and during a turn; answers are always one word."""
        return self._editing_mode

    @editing_mode.setter
    def editing_mode(self, mode: EditingMode) -> None:
        self._editing_mode = mode
        for session in (self._messages, self._busy):
            session.editing_mode = mode
            if mode is EditingMode.VI:  # Esc is a key of its own, and what is behind it in one piece makes it Alt.
                session.app.ttimeoutlen, session.app.timeoutlen = ESCAPE_S, ALT_S

    @property
    def vi_mark(self) -> str:
        """The mode of vi's keys on the line that is typed; empty without them."""
        return vi_mark((self._typing or self._messages).app)

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """The terminal as an editor needs it."""
        with plain_input(), self._source.cooked_mode():
            yield
        self._take_typed_lines()

    def _take_report(self, report: str) -> None:
        if background := parse_background(report):
            self.background = background
            self.background_known()
        if report in (FOCUS_IN, FOCUS_OUT):
            self.is_focused = report == FOCUS_IN
            if self.is_focused:
                self.focused()

    def _take_typed_lines(self) -> None:
        if isinstance(self._source, Keyboard):
            self._source.take_typed_lines()

    async def message(
        self, take_back: TakeBack | None = None, gone: asyncio.Future[Any] | None = None
    ) -> str | None:
        """Read the next message; several lines come by paste, Ctrl-J, Alt-Enter or Shift-Enter.

        Where messages are queued, Up on an empty line calls `take_back` for the newest. As soon as `gone` is done
        the message is None, and what is typed becomes the beginning of the next one; it is cancelled in the end.

        Raises:
            InputInterrupted: Ctrl-C twice on an empty line, or once where the question before was left with it; a
                line that is not empty it only clears.
            InputClosed: Ctrl-D on an empty line.
        """
        self._take_back = take_back
        self._typing = self._messages
        was_interrupted, self._was_interrupted = self._was_interrupted, False
        try:
            if not was_interrupted:
                with contextlib.suppress(InputInterrupted):
                    return await self._read_until(gone, self._messages, "> ")
            sys.stdout.write("Press Ctrl-C again to leave; you can resume the thread.\n")
            return await self._read_until(gone, self._messages, "> ")
        finally:
            self._typing = None
            if gone is not None:
                gone.cancel()

    async def answer(self, prompt: str | KeyLine, gone: asyncio.Future[Any] | None = None) -> str | None:
        """Read one line; None as soon as `gone` is done, which is cancelled in the end: the question is not open.

        A wide prompt is folded between words. The arrows put the keys of a line of keys in turn on the line. Esc
        and Ctrl-C choose its key `back`, if it has one; otherwise they clear the keys that are typed, then leave.

        Raises:
            InputCancelled, InputInterrupted, InputClosed: Esc, Ctrl-C, Ctrl-D.
        """
        self._keys = prompt if isinstance(prompt, KeyLine) else None
        self._was_interrupted = False
        try:
            return await self._read_until(gone, self._answers, prompt)
        except InputInterrupted:
            self._was_interrupted = True
            raise
        finally:
            if gone is not None:
                gone.cancel()

    async def _read_until(
        self, gone: asyncio.Future[Any] | None, session: PromptSession[str], prompt: str | KeyLine
    ) -> str | None:
        reading = asyncio.create_task(self._read(session, prompt))
        try:
            await asyncio.wait({reading, *filter(None, (gone,))}, return_when=asyncio.FIRST_COMPLETED)
            # After Enter, the session still waits for a completion that is under way.
            if reading.done() or session.app.is_done:
                return await reading
            self._unfinished = session.default_buffer.document if session is self._typing else self._unfinished
            return None
        finally:
            session.app.erase_when_done = not reading.done()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            session.app.erase_when_done = False

    async def choose(self, menu: Menu) -> Picked | None:
        """Let the person choose a row of a menu; None if they leave. Keys typed before do not choose.

        While a turn runs nothing else may end it before this returns.
        """
        async with self._turn_suspended():
            return await self._choose(menu)

    async def _choose(self, menu: Menu) -> Picked | None:
        self.keep_typed()
        if not self._is_plain:
            app = self._drawn = menu.application(self._source, terminal_output())
            app.before_render += self._before_render
            try:
                return await app.run_async(handle_sigint=False, set_exception_handler=False)
            finally:
                self._drawn = None
                self._show_above()
        sys.stdout.write(menu.as_text(terminal_output().get_size().columns))
        return await menu.choose_by_number(self.answer, sys.stdout.write)

    @contextlib.asynccontextmanager
    async def during_turn(self, keys: TurnKeys) -> AsyncIterator[None]:
        """Edit a line while a turn runs; what is left of it is the beginning of the next message."""
        session = self._busy
        self._take_back, self._turn, self._typing = keys.take_back, keys, session
        deferred = self._deferred = list[KeyPress]()
        await self._begin_turn_line()
        try:
            yield
        finally:
            self._turn = self._typing = None
            left = await self._end_turn_line()
            if deferred:
                rest = [KeyPress(Keys.BracketedPaste, left.text)] if left.text else []
                store_typeahead(self._source, [*deferred, *rest, *get_typeahead(self._source)])
            else:
                self._unfinished = left

    async def _begin_turn_line(self) -> None:
        session = self._busy
        started = asyncio.Event()

        def begin() -> None:
            self._restore_unfinished()
            started.set()

        # Whoever runs the turn handles the signal.
        prompt = session.prompt_async(pre_run=begin, handle_sigint=False, set_exception_handler=False)
        typing = self._turn_line = asyncio.create_task(prompt)
        await asyncio.wait({typing, asyncio.create_task(started.wait())}, return_when=asyncio.FIRST_COMPLETED)
        # An Esc that came with the last line is still taken for the beginning of a sequence.
        session.app.create_background_task(self._flush_later(session.app))
        self._report_change(session.default_buffer)

    async def _end_turn_line(self) -> Document:
        """Returns what is left on the line."""
        session, typing = self._busy, self._turn_line
        if session.app.is_running and not session.app.is_done:
            session.app.exit(result="")
        if typing is not None:
            with contextlib.suppress(EOFError):
                await typing
        return session.default_buffer.document

    @contextlib.asynccontextmanager
    async def _turn_suspended(self) -> AsyncIterator[None]:
        """The keys are read by something else, while the turn continues where one runs."""
        turn = self._turn
        if turn is None:
            yield
            return
        turn.pause(True)
        self._unfinished = await self._end_turn_line()
        try:
            yield
        finally:
            turn.pause(False)
            await self._begin_turn_line()

    def show(self, show: Callable[[], None]) -> None:
        """Print something, above the line at the prompt where there is one; what is typed is kept."""
        if isinstance(self._drawn, EchoedLine):
            self._drawn.interrupt(show)
        elif self._drawn is not None:
            self._above.append(show)
            self._drawn.invalidate()
        else:
            show()

    def remember(self, line: str) -> None:
        """Add a line to the history, as if it had been typed at the prompt."""
        with contextlib.suppress(OSError):
            self._history.append_string(line)

    def begin_with(self, text: str) -> None:
        """Begin the next message with this text."""
        self._unfinished = end_of(text + self._unfinished.text)

    def drop_typed_ahead(self) -> None:
        """No key typed until now answers what is shown next; a line that was begun is for the next message."""
        self._keep(get_typeahead(self._source))
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._source.fileno(), termios.TCIFLUSH)

    def keep_typed(self) -> None:
        """What was typed until now was typed with no question in sight: all of it is for the next message."""
        keys = get_typeahead(self._source)
        while more := self._source.read_keys():
            keys += more
        self._keep([*keys, *self._source.flush_keys()])

    def _keep(self, keys: list[KeyPress]) -> None:
        """Begin the next message with these keys; no line is sent unseen."""
        text = typed_text(keys)
        if text.strip():
            self._unfinished = end_of(self._unfinished.text + text)

    def _restore_unfinished(self) -> None:
        """Begin the line with what is unfinished; called when it can take in text, so that none falls between."""
        unfinished, self._unfinished = self._unfinished, Document()
        if unfinished.text and self._typing is not None:
            self._typing.default_buffer.document = unfinished

    async def _read(self, session: PromptSession[str], prompt: str | KeyLine) -> str:
        begin = self._restore_unfinished if session is self._typing else None
        # A prompt that ended within Ctrl-R would hand the keys of this one to that search.
        session.layout.focus(session.default_buffer)

        def fragments() -> StyleAndTextTuples:
            width, typed = terminal_output().get_size().columns, session.default_buffer.text
            return [(f"{_PROMPT_STYLE} {style}", text) for style, text in prompt_fragments(prompt, width, typed)]

        try:
            if not self._is_plain:
                self._drawn = session.app
                return self._pastes.complete(await session.prompt_async(fragments, pre_run=begin))
            with EchoedLine("".join(text for _, text, *_ in fragments()), session.default_buffer) as echo:
                self._drawn = echo
                return self._pastes.complete(await session.prompt_async(pre_run=begin))
        except EOFError:
            raise InputClosed from None
        finally:
            self._drawn = None
            self._show_above()

    @cached_property
    def _messages(self) -> PromptSession[str]:
        keys = self._line_keys()
        is_loading, has_pastes = Condition(lambda: self.early is not None), Condition(self._pastes.are_on_line)
        rewinds = keys.add("escape", "escape", filter=~is_searching & is_empty & ~vi_insert_mode & ~is_loading)
        rewinds(lambda event: event.app.exit(result="/rewind"))
        keys.add("c-x", "c-e")(lambda event: event.app.create_background_task(self._edit(event.current_buffer)))
        bind_completing(keys)
        bind_loading(keys, lambda: self.early, lambda text: self.say(text))  # noqa: PLW0108 - the chat sets its own way later

        @keys.add("enter", filter=~is_searching & ~ends_with_backslash & (is_loading | has_pastes))
        def _enter_early_or_pastes(event: KeyPressEvent) -> None:
            line = self._pastes.complete(event.current_buffer.text)
            if self.early is None:
                self.remember(line)
                event.app.exit(result=event.current_buffer.text)
            else:
                clear(event.current_buffer)
                if line.strip():
                    self.early.enter_early(line)
                    self._take_back = self.early.take_back_early

        @keys.add("c-c", filter=~is_searching)
        def _clear_or_leave(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                clear(event.current_buffer)
            else:
                event.app.exit(exception=InputInterrupted, style="class:aborting")

        completing: dict[str, Any] = {"complete_while_typing": is_completed, "reserve_space_for_menu": _MENU_LINES}
        toolbar = None if self._is_plain else lambda: self.status()  # noqa: PLW0108 - another one is set later
        session = self._session(keys, bottom_toolbar=toolbar, **self._editing, **completing)
        session.app.before_render += wait_for_escape
        return session

    @cached_property
    def _answers(self) -> PromptSession[str]:
        keys = self._common_keys()
        bind_answering(keys, lambda: self._keys)
        session = self._session(keys)
        session.app.ttimeoutlen, session.app.timeoutlen = ESCAPE_S, ALT_S
        return session

    @cached_property
    def _busy(self) -> PromptSession[str]:
        session = self._session(self._turn_keys(), is_drawn=False, complete_while_typing=False, **self._editing)
        session.app.ttimeoutlen, session.app.timeoutlen = ESCAPE_S, ALT_S
        session.default_buffer.on_text_changed += self._report_change
        session.default_buffer.on_cursor_position_changed += self._report_change
        return session

    @property
    def _editing(self) -> dict[str, Any]:
        shared = {"history": self._history, "clipboard": self._clipboard}
        return {**shared, "completer": self._completer}

    def _session(self, keys: KeyBindings, *, is_drawn: bool = True, **options: Any) -> PromptSession[str]:
        session: PromptSession[str] = PromptSession(
            input=self._source,
            output=terminal_output() if is_drawn and not self._is_plain else DummyOutput(),
            interrupt_exception=InputInterrupted,
            eof_exception=InputClosed,
            key_bindings=keys,
            style=prompt_style(),
            **options,
        )
        session.app.before_render += self._before_render
        return session

    def _common_keys(self) -> KeyBindings:
        """The keys of every line, beside those of prompt_toolkit."""
        keys = KeyBindings()
        enter = keys.add(CTRL_ENTER)
        enter(lambda event: event.key_processor.feed(KeyPress(Keys.Enter, "\r"), first=True))
        keys.add("escape", "#")(lambda _: None)  # prompt_toolkit enters the line; so it does with Ctrl-O.

        @keys.add("c-o")
        def _show_pastes(event: KeyPressEvent) -> None:
            event.current_buffer.document = end_of(self._pastes.expand(event.current_buffer.text))

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(self._pastes.shorten(text))
            is_message = self._typing is not None and event.current_buffer is self._typing.default_buffer
            if is_message:
                self._pastes.attach_dropped(event.current_buffer, text)

        @keys.add(BREAK_LINE)
        @keys.add("escape", "enter", filter=emacs_mode)  # In vi mode these are two keys.
        @keys.add("c-j", filter=~is_searching & Condition(supports_escapes))  # Elsewhere Enter may send it.
        def _break_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-z")
        def _suspend_job(event: KeyPressEvent) -> None:
            if self._turn is not None:
                self._turn.suspend()
                self._suspend()
                self._report_change(event.current_buffer)
            elif isinstance(self._drawn, EchoedLine):
                self._drawn.interrupt(self._suspend)
            else:
                event.app.renderer.erase()
                self._suspend()
                event.app.renderer.reset()

        return keys

    def _line_keys(self) -> KeyBindings:
        """The keys of a message, at the prompt and while a turn runs, beside those of prompt_toolkit."""
        keys = self._common_keys()
        self._pastes.bind(keys)

        @keys.add("up", filter=~is_searching & is_empty)
        def _take_back_or_up(event: KeyPressEvent) -> None:
            if self._take_back is None:
                event.current_buffer.auto_up(count=event.arg)
            elif self._taking_back is None or self._taking_back.done():
                # Not a task of the line's: if it ended with the line, the message would be lost.
                self._taking_back = asyncio.ensure_future(self._take(self._take_back))

        @keys.add("s-tab", filter=~has_completions)
        def _cycle_mode(event: KeyPressEvent) -> None:
            self.cycle_mode()
            event.app.invalidate()

        @keys.add("enter", filter=ends_with_backslash)
        def _continue_line(event: KeyPressEvent) -> None:
            event.current_buffer.delete_before_cursor()
            event.current_buffer.insert_text("\n")

        return keys

    def _turn_keys(self) -> KeyBindings:
        keys = self._line_keys()

        @keys.add("enter", filter=~is_searching & ~ends_with_backslash)
        @keys.add(CTRL_ENTER, filter=~is_searching)
        def _enter(event: KeyPressEvent) -> None:
            line = self._pastes.complete(event.current_buffer.text)
            clear(event.current_buffer)
            turn, is_urgent = self._turn, event.key_sequence[-1].key == CTRL_ENTER
            if turn is not None and turn.enter(line, is_urgent):
                self._take_back = turn.take_back
            else:
                self._deferred += [KeyPress(Keys.BracketedPaste, line), KeyPress(Keys.Enter, "\r")]

        bind_leaving(keys, lambda _: self._turn.stop() if self._turn is not None else None)

        @keys.add("c-d", filter=is_empty)
        def _leave_afterwards(_: KeyPressEvent) -> None:
            self._deferred.append(KeyPress(Keys.ControlD, "\x04"))
            self.say("Ctrl-D leaves once the turn has ended. Esc or Ctrl-C stops it now.")

        return keys

    async def _take(self, take_back: TakeBack) -> None:
        """Fetch a queued message; it comes onto the line, or onto the next one."""
        text = await take_back()
        session = self._typing
        if text is None:
            self._take_back = None
        elif session is None or not session.app.is_running or session.app.is_done:
            self._unfinished = end_of(self._unfinished.text + text)
        else:
            session.default_buffer.document = end_of(text + session.default_buffer.text)

    async def _edit(self, buffer: Buffer) -> None:
        """Open what is typed in the person's editor."""
        editor = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.prompts.editor")
        try:
            async with in_terminal():
                with plain_input():
                    text: str = await editor.edit_text(self._pastes.expand(buffer.text))
        except editor.EditFailed as failure:
            self.say(str(failure))
            return
        buffer.document = end_of(text.rstrip("\n"))

    async def _flush_later(self, app: Application[str]) -> None:
        await asyncio.sleep(ESCAPE_S)
        app.key_processor.feed_multiple(self._source.flush_keys())
        app.key_processor.process_keys()

    def _report_change(self, buffer: Buffer) -> None:
        if self._turn is not None:
            self._turn.changed(buffer.text, buffer.cursor_position)

    def _before_render(self, app: Application[Any]) -> None:
        if self._above and self._drawn is not None:
            app.renderer.erase()
            self._show_above()

    def _show_above(self) -> None:
        while self._above:
            self._above.pop(0)()

    def _suspend(self) -> None:
        """Stop this job until the shell continues it; commands that run continue."""
        with self.given_away():
            os.kill(0, signal.SIGTSTP)
