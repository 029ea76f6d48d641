"""The keyboard side of the terminal: messages, answers, keys while a turn runs, an editor.

The terminal stays in raw mode while the chat runs, so that no key is echoed between two prompts and Ctrl-C is a key
like any other. Keys typed while a turn runs are kept for the next message, never for a question.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from prompt_toolkit.completion import Completer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input

from graph_agent.cli.prompts.keyboard import Keyboard, TypedHistory, bracketed_paste, plain_paste
from graph_agent.cli.prompts.line_editor import InputClosed, InputInterrupted, LineEditor, TakeBack, TurnKeys
from graph_agent.cli.render.escape import is_plain_terminal

__all__ = ["InputClosed", "InputInterrupted", "TakeBack", "Terminal", "TurnKeys"]


class Terminal:
    """One real terminal, as long as a chat runs in it."""

    def __init__(
        self, history: Path | None, completer: Completer | None = None, source: Input | None = None
    ) -> None:
        self.status: Callable[[], str] = lambda: "loading …"
        """The line below the prompt."""
        self._input = source or Keyboard(sys.stdin)
        self._history = TypedHistory(history) if history else InMemoryHistory()
        self._editor = LineEditor(
            self._input,
            self._history,
            self._suspend,
            is_plain=is_plain_terminal(),
            completer=completer,
            status=self._format_status,
        )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raw mode for as long as the chat runs; the terminal is given back as it was."""
        with self._input.raw_mode(), bracketed_paste():
            yield

    async def message(self, take_back: TakeBack | None = None) -> str:
        """Read the next message; several lines come by paste or Alt-Enter.

        Where messages are queued, Up on an empty line calls `take_back` for the newest.

        Raises:
            InputInterrupted: Ctrl-C twice on an empty line; a line that is not empty it only clears.
            InputClosed: Ctrl-D on an empty line.
        """
        with contextlib.suppress(InputInterrupted):
            return await self._editor.message(take_back)
        sys.stdout.write("Press Ctrl-C again to leave; you can resume the thread.\n")
        return await self._editor.message(take_back)

    def remember(self, line: str) -> None:
        """Add a line to the history, as if it had been typed at the prompt."""
        with contextlib.suppress(OSError):
            self._history.append_string(line)

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None:
        """Read one line; None as soon as `gone` is done: then the question is not open any more.

        Raises:
            InputInterrupted, InputClosed: Ctrl-C, Ctrl-D.
        """
        reading = asyncio.create_task(self._editor.answer(prompt))
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
        """Print something, above the line that is being typed where there is one; nothing typed is lost."""
        self._editor.show(show)

    def drop_typed_ahead(self) -> None:
        """No key typed until now answers what is shown next; a line that was begun is for the next message."""
        self._editor.keep_typed_ahead()
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._input.fileno(), termios.TCIFLUSH)

    def keep_typed(self) -> None:
        """What was typed until now was typed with no question in sight: all of it is for the next message."""
        self._editor.keep_all_typed()

    def during_turn(self, keys: TurnKeys) -> AbstractAsyncContextManager[None]:
        """Edit a line while a turn runs; whatever is not taken waits for the next message."""
        return self._editor.during_turn(keys)

    @contextlib.contextmanager
    def given_away(self) -> Iterator[None]:
        """The terminal as an editor needs it."""
        with plain_paste(), self._input.cooked_mode():
            yield

    def _format_status(self) -> str:
        return self.status()

    def _suspend(self) -> None:
        """Stop this job until the shell continues it; commands that run continue."""
        with self.given_away():
            os.kill(0, signal.SIGTSTP)
