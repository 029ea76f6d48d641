"""The keyboard side of the terminal: lines of input, keys while a turn runs, an editor. Prints nothing of its own.

The terminal stays in raw mode as long as the chat lives, so that no key is echoed between two prompts and Ctrl-C is
a key like any other. Keys typed while a turn runs are kept for the next message, never for a question.

The keyboard of a terminal, which hands on as one paste what came faster than anybody types.

A terminal, or a program that types, may send a long text without the marks of a paste. Key by key it would take
prompt_toolkit a minute to insert. Knows no prompt and what no key means.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from prompt_toolkit.completion import Completer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from graph_agent.cli.prompts.input_line import (
    DrawnLine,
    Lines,
    TypedHistory,
    Unfinished,
    paste_in_brackets,
    paste_plainly,
)
from graph_agent.cli.prompts.keys import InputClosed, InputInterrupted, Put, TakeBack, TurnKeys, Watch
from graph_agent.cli.prompts.plain_line import PlainLine
from graph_agent.cli.render.escape import is_plain_terminal

__all__ = ["InputClosed", "InputInterrupted", "Keyboard", "Line", "Status", "Terminal", "pasted"]

_FASTER_THAN_TYPED = 32
"""So many characters at once come from no fingers."""


class Keyboard(Vt100Input):
    """What is typed at one terminal."""

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come."""
        return pasted(super().read_keys())


def pasted(keys: list[KeyPress]) -> list[KeyPress]:
    """The same keys, with each long run of characters as one paste.

    Its first and last stay keys: they may belong to the key before, after Escape, or to that behind, a backslash.
    """
    if len(keys) < _FASTER_THAN_TYPED:
        return keys
    handed: list[KeyPress] = []
    for is_text, run in groupby(keys, key=_is_character):
        together = list(run)
        if is_text and len(together) >= _FASTER_THAN_TYPED:
            first, *middle, last = together
            text = "".join(press.key for press in middle)
            together = [first, KeyPress(Keys.BracketedPaste, text), last]
        handed += together
    return handed


def _is_character(press: KeyPress) -> bool:
    return not isinstance(press.key, Keys) and press.key.isprintable()


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


class Line(Protocol):
    """How a line is typed and shown."""

    @property
    def is_read(self) -> bool:
        """Whether one is being typed."""
        ...

    async def message(self) -> str: ...

    async def answer(self, prompt: str) -> str: ...

    def above(self, show: Callable[[], None]) -> None:
        """Print something while a line is typed; the line goes on below it."""
        ...


class Terminal:
    """One real terminal, for the life of a chat."""

    def __init__(
        self, history: Path | None, completer: Completer | None = None, source: Input | None = None
    ) -> None:
        self._input = source or Keyboard(sys.stdin)
        self.status = Status()
        self._history = TypedHistory(history) if history else InMemoryHistory()
        self._unfinished = Unfinished(self._input)
        lines = Lines(self._input, self._suspend, self._history, self._unfinished)
        self._line: Line = PlainLine(lines) if is_plain_terminal() else DrawnLine(lines, completer, self.status)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raw mode for as long as the chat lives; the terminal is given back as it was."""
        with self._input.raw_mode(), paste_in_brackets():
            yield

    async def message(self, take_back: TakeBack | None = None) -> str:
        """Read the next message; several lines come by paste or Alt-Enter.

        Where messages wait, Up on an empty line may `take_back` the newest.

        Raises:
            Interrupted: Ctrl-C twice on an empty line; a line that is not empty it only clears.
            Left: Ctrl-D on an empty line.
        """
        self._unfinished.source_of_more = take_back
        self._unfinished.begin()
        with contextlib.suppress(InputInterrupted):
            return await self._line.message()
        sys.stdout.write("Ctrl-C again leaves; the thread can be resumed.\n")
        return await self._line.message()

    def remember(self, line: str) -> None:
        """Let what was typed be found again, as what is typed at the prompt is."""
        with contextlib.suppress(OSError):
            self._history.append_string(line)

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None:
        """Read one line; None as soon as `gone` comes true: then the question is not open any more.

        Raises:
            Interrupted, Left: Ctrl-C, Ctrl-D.
        """
        reading = asyncio.create_task(self._line.answer(prompt))
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

    def show(self, show: Callable[[], None]) -> None:
        """Print something, above a line that is being typed where there is one.

        Nothing that is typed meanwhile is lost: the keyboard stays as it is while the line is drawn anew.
        """
        if self._line.is_read:
            self._line.above(show)
        else:
            show()

    def drop_typed_ahead(self) -> None:
        """No key typed until now is an answer to what is only shown next; a line that was begun is for later."""
        self._unfinished.keep_typed_ahead()
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._input.fileno(), termios.TCIFLUSH)

    def keep_typed(self) -> None:
        """What was typed until now was typed with no question in sight: all of it is for the next message."""
        self._unfinished.keep_all_typed()

    @contextlib.asynccontextmanager
    async def watched(
        self,
        on_stop: Callable[[], None],
        on_line: Callable[[str], bool] = lambda _: False,
        on_typed: Callable[[str], None] = lambda _: None,
        on_suspend: Callable[[], None] = lambda: None,
        on_back: Callable[[Put], None] = lambda _: None,
    ) -> AsyncIterator[None]:
        """Read keys while a turn runs: Esc and Ctrl-C call `on_stop`, Enter offers the line to `on_line`.

        Whatever nobody takes waits for the next message; `on_typed` is told the line as it stands. Before the job
        is stopped by Ctrl-Z, `on_suspend` may tidy the screen. Up on an empty line lets `on_back` put a text on it.
        """

        def suspend() -> None:
            on_suspend()
            self._suspend()

        self._unfinished.begin()
        with TurnKeys(self._input, Watch(on_stop, on_line, on_typed, suspend, on_back)).watched():
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
