"""The keyboard side of the terminal: lines of input, keys while a turn runs, an editor. Prints nothing of its own.

The terminal stays in raw mode as long as the chat lives, so that no key is echoed between two prompts and Ctrl-C is
a key like any other. Keys typed while a turn runs are kept for the next message, never for a question.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, run_in_terminal
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import is_dumb_terminal

__all__ = ["Interrupted", "Left", "Status", "Terminal"]

_ESCAPE_SECONDS = 0.1
"""A lone ESC byte this long is the key Esc and not the beginning of a sequence."""

_PROMPT_STYLE = "ansicyan"
"""A colour of its own, because blanks at the end of a plain prompt are not sent to the terminal."""


class Interrupted(Exception):
    """Ctrl-C at a prompt."""


class Left(Exception):
    """Ctrl-D at a prompt."""


class Status:
    """The line below the prompt: until somebody knows better, that things are being loaded."""

    def __init__(self) -> None:
        self._tell: Callable[[], str] = lambda: "loading …"

    def become(self, tell: Callable[[], str]) -> None:
        """Ask this from now on."""
        self._tell = tell

    def __call__(self) -> str:
        """The line as it is now."""
        return self._tell()


class Terminal:
    """One real terminal, for the life of a chat."""

    def __init__(
        self, history: Path | None, completer: Completer | None = None, source: Input | None = None
    ) -> None:
        self._input = source or create_input(sys.stdin)
        self.status = Status()
        self._messages = self._prompt_session(
            history=FileHistory(str(history)) if history else None,
            completer=completer,
            complete_while_typing=False,
            enable_open_in_editor=True,
            key_bindings=_message_keys(),
        )
        self._answers = self._prompt_session(key_bindings=_answer_keys())
        self._unshown: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raw mode for as long as the chat lives; the terminal is given back as it was."""
        with self._input.raw_mode():
            yield

    async def message(self) -> str:
        """Read the next message; several lines come by paste or Alt-Enter.

        Raises:
            Interrupted: Ctrl-C twice on an empty line; a line that is not empty it only clears.
            Left: Ctrl-D on an empty line.
        """
        with contextlib.suppress(Interrupted):
            return await self._message()
        sys.stdout.write("Ctrl-C again leaves; the thread can be resumed.\n")
        return await self._message()

    async def _message(self) -> str:
        toolbar = None if is_dumb_terminal() else self.status
        try:
            text: str = await self._messages.prompt_async([(_PROMPT_STYLE, "> ")], bottom_toolbar=toolbar)
            return text
        finally:
            self._show_all()

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None:
        """Read one line; None as soon as `gone` comes true: then the question is not open any more.

        Raises:
            Interrupted, Left: Ctrl-C, Ctrl-D.
        """
        reading = asyncio.create_task(self._answers.prompt_async([(_PROMPT_STYLE, prompt)]))
        waited: set[asyncio.Future[Any]] = {reading}
        if gone is not None:
            waited.add(asyncio.ensure_future(gone))
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            for task in waited:
                task.cancel()
            await asyncio.gather(*waited, return_exceptions=True)
            self._show_all()

    def show(self, show: Callable[[], None]) -> None:
        """Print something at once, above a line that is being typed where there is one."""
        self._unshown.append(show)
        typing = next((one.app for one in (self._messages, self._answers) if one.app.is_running), None)
        if typing is None or typing.context is None:
            self._show_all()
        else:
            # Whoever calls need not belong to the prompt: in its own context the line is found and drawn anew.
            above = self.above(self._show_all)
            self._showing = asyncio.get_running_loop().create_task(above, context=typing.context.copy())

    def _show_all(self) -> None:
        while self._unshown:
            self._unshown.pop(0)()

    async def above(self, show: Callable[[], None]) -> None:
        """Print something while a message is being typed: it goes above the line, which is drawn anew."""
        if is_dumb_terminal():
            show()
        else:
            await run_in_terminal(show)

    def drop_typed_ahead(self) -> None:
        """Forget every key typed until now: it cannot be an answer to what is only shown next."""
        clear_typeahead(self._input)
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._input.fileno(), termios.TCIFLUSH)

    @contextlib.asynccontextmanager
    async def watched(
        self, on_stop: Callable[[], None], on_line: Callable[[str], bool] = lambda _: False
    ) -> AsyncIterator[None]:
        """Read keys while a turn runs: Esc and Ctrl-C call `on_stop`, Enter offers the line to `on_line`.

        Whatever nobody takes waits for the next message.
        """
        keys = _TurnKeys(self._input, on_stop, on_line)
        with self._bracketed_paste(), self._input.attach(keys.read):
            try:
                yield
            finally:
                keys.finish()

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """The terminal as an editor needs it."""
        with self._input.cooked_mode():
            yield

    @contextlib.contextmanager
    def _bracketed_paste(self) -> Iterator[None]:
        if is_dumb_terminal():
            yield
            return
        output = _output()
        output.enable_bracketed_paste()
        output.flush()
        try:
            yield
        finally:
            output.disable_bracketed_paste()
            output.flush()

    def _prompt_session(self, **options: Any) -> PromptSession[str]:
        exceptions = {"interrupt_exception": Interrupted, "eof_exception": Left}
        options = {"input": self._input, "enable_suspend": True, **exceptions, **options}
        if not is_dumb_terminal():
            return PromptSession(output=_output(), **options)
        # A dumb terminal is served only where no output is named, and the usual one would send escapes at once.
        with create_app_session(output=PlainTextOutput(sys.stdout)):
            return PromptSession(**options)


class _TurnKeys:
    """Takes keys in while nobody prompts for them."""

    def __init__(self, source: Input, on_stop: Callable[[], None], on_line: Callable[[str], bool]) -> None:
        self._source = source
        self._on_stop = on_stop
        self._on_line = on_line
        self._kept: list[KeyPress] = []
        self._flushing: asyncio.TimerHandle | None = None

    def read(self) -> None:
        self._sort(self._source.read_keys())
        if self._flushing is not None:
            self._flushing.cancel()
        self._flushing = asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._flush)

    def finish(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        self._flush()
        store_typeahead(self._source, self._kept)

    def _flush(self) -> None:
        self._sort(self._source.flush_keys())

    def _sort(self, keys: list[KeyPress]) -> None:
        for press in keys:
            if press.key in (Keys.Escape, Keys.ControlC):
                self._on_stop()
            elif press.key is Keys.ControlZ:
                self._suspend()
            elif press.key is Keys.Enter and self._on_line(_line_of(self._kept)):
                self._kept.clear()
            else:
                self._kept.append(press)

    def _suspend(self) -> None:
        """Stop this job until the shell takes it up again; commands that run go on."""
        with self._source.cooked_mode():
            os.kill(0, signal.SIGTSTP)


def _line_of(keys: list[KeyPress]) -> str:
    """What the keys would have written into an empty line."""
    line = ""
    for press in keys:
        if press.key is Keys.Backspace:
            line = line[:-1]
        elif press.key is Keys.BracketedPaste:
            line += press.data.replace("\r\n", "\n").replace("\r", "\n")
        elif len(press.key) == 1:
            line += press.key
    return line


class _Output(Vt100_Output):
    """Asks no terminal for the cursor's position: those that do not answer would earn delays and a warning."""

    def get_rows_below_cursor_position(self) -> int:
        """Room for the line and the status below it; the terminal scrolls where there is less."""
        return 2


def _output() -> Output:
    def size() -> Size:
        try:
            columns, lines = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns, lines = 0, 0
        return Size(rows=lines or 24, columns=columns or 80)

    colors = ColorDepth.from_env()
    return _Output(sys.stdout, size, os.environ.get("TERM"), default_color_depth=colors, enable_cpr=False)


def _message_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=Interrupted, style="class:aborting")

    return keys


def _answer_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=Left, style="class:exiting")

    return keys
