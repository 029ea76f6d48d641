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
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.utils import is_dumb_terminal

from graph_agent.cli.ask.keys import Interrupted, Left, TurnKeys, answer_keys, message_keys
from graph_agent.cli.ask.output import paste_in_brackets, paste_plainly, prompt_output

__all__ = ["Interrupted", "Left", "Status", "Terminal"]

_PROMPT_STYLE = "ansicyan"
"""A colour of its own, because blanks at the end of a plain prompt are not sent to the terminal."""


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
            key_bindings=message_keys(self._suspend),
        )
        self._answers = self._prompt_session(key_bindings=answer_keys(self._suspend))
        self._unshown: list[Callable[[], None]] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raw mode for as long as the chat lives; the terminal is given back as it was."""
        with self._input.raw_mode(), paste_in_brackets():
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
        """Print something, above a line that is being typed where there is one.

        Nothing that is typed meanwhile is lost: the keyboard stays as it is while the line is drawn anew.
        """
        self._unshown.append(show)
        typing = next((one.app for one in (self._messages, self._answers) if one.app.is_running), None)
        if typing is None:
            self._show_all()
        else:
            typing.invalidate()

    def _show_above(self, typing: Application[str]) -> None:
        if self._unshown:
            typing.renderer.erase()
            self._show_all()

    def _show_all(self) -> None:
        while self._unshown:
            self._unshown.pop(0)()

    def drop_typed_ahead(self) -> None:
        """Forget every key typed until now: it cannot be an answer to what is only shown next."""
        clear_typeahead(self._input)
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._input.fileno(), termios.TCIFLUSH)

    @contextlib.asynccontextmanager
    async def watched(
        self,
        on_stop: Callable[[], None],
        on_line: Callable[[str], bool] = lambda _: False,
        on_typed: Callable[[str], None] = lambda _: None,
        on_suspend: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[None]:
        """Read keys while a turn runs: Esc and Ctrl-C call `on_stop`, Enter offers the line to `on_line`.

        Whatever nobody takes waits for the next message; `on_typed` is told the line as it stands. Before the job
        is stopped by Ctrl-Z, `on_suspend` may tidy the screen.
        """

        def suspend() -> None:
            on_suspend()
            self._suspend()

        with TurnKeys(self._input, on_stop, on_line, on_typed, suspend).watched():
            yield

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """The terminal as an editor needs it."""
        with paste_plainly(), self._input.cooked_mode():
            yield

    def _suspend(self) -> None:
        """Stop this job until the shell takes it up again; commands that run go on."""
        with self.given_away():
            os.kill(0, signal.SIGTSTP)

    def _prompt_session(self, **options: Any) -> PromptSession[str]:
        exceptions = {"interrupt_exception": Interrupted, "eof_exception": Left}
        options = {"input": self._input, **exceptions, **options}
        if is_dumb_terminal():
            # It is served only where no output is named, and the usual one would send escapes at once.
            with create_app_session(output=PlainTextOutput(sys.stdout)):
                return PromptSession(**options)
        session: PromptSession[str] = PromptSession(output=prompt_output(), **options)
        session.app.before_render += self._show_above
        return session
