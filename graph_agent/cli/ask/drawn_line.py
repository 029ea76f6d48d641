"""A line of input as terminals can draw it: edited in place, completed, with a line of status below it."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer

from graph_agent.cli.ask.choices import folded_prompt
from graph_agent.cli.ask.keys import Interrupted, Left, answer_keys, message_keys
from graph_agent.cli.ask.lines import Lines
from graph_agent.cli.ask.output import paste_plainly, prompt_output
from graph_agent.cli.escape import escape

__all__ = ["DrawnLine"]

_PROMPT_STYLE = "ansicyan"
"""A colour of its own, because blanks at the end of a plain prompt are not sent to the terminal."""


class DrawnLine:
    """The one line that is typed at a time."""

    def __init__(self, lines: Lines, completer: Completer | None, status: Callable[[], str]) -> None:
        self._source = lines.source
        self._unfinished = lines.unfinished
        self._status = status
        self._messages = self._prompt_session(
            history=lines.history,
            completer=completer,
            complete_while_typing=False,
            key_bindings=message_keys(lines.suspend, self._edit, self._unfinished.take_back),
        )
        self._answers = self._prompt_session(key_bindings=answer_keys(lines.suspend))
        self._unshown: list[Callable[[], None]] = []

    @property
    def is_read(self) -> bool:
        """Whether a line is being typed."""
        return self._typing is not None

    async def message(self) -> str:
        """Read a message; raises Interrupted or Left."""
        _leave_search(self._messages)
        try:
            with self._unfinished.put_by(self._put):
                text: str = await self._messages.prompt_async([(_PROMPT_STYLE, "> ")], bottom_toolbar=self._status)
            return text
        finally:
            self._show_all()

    async def answer(self, prompt: str) -> str:
        """Read an answer; raises Interrupted or Left. A prompt wider than the screen is folded between words."""
        folded = folded_prompt(prompt, self._answers.output.get_size().columns)
        _leave_search(self._answers)
        try:
            text: str = await self._answers.prompt_async([(_PROMPT_STYLE, folded)])
            return text
        finally:
            self._show_all()

    def above(self, show: Callable[[], None]) -> None:
        """Print something before the line is drawn the next time, which is at once; the keyboard stays as it is."""
        self._unshown.append(show)
        if self._typing is not None:
            self._typing.invalidate()

    def _put(self, text: str) -> bool:
        if self._messages.app.is_done:
            return False
        line = self._messages.default_buffer
        line.text = text + line.text
        line.cursor_position = len(line.text)
        return True

    async def _edit(self, line: Buffer) -> None:
        """Open what is typed in the person's editor."""
        editing = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.ask.editing")
        try:
            async with in_terminal():
                with paste_plainly():
                    text: str = await editing.edited_text(line.text)
        except editing.NotEdited as failure:
            told = escape(str(failure))
            self.above(lambda: print(told, flush=True))  # noqa: T201 - the screen is what a chat has
            return
        line.text = text.rstrip("\n")
        line.cursor_position = len(line.text)

    @property
    def _typing(self) -> Application[str] | None:
        return next((one.app for one in (self._messages, self._answers) if one.app.is_running), None)

    def _show_above(self, typing: Application[str]) -> None:
        if self._unshown:
            typing.renderer.erase()
            self._show_all()

    def _show_all(self) -> None:
        while self._unshown:
            self._unshown.pop(0)()

    def _prompt_session(self, **options: Any) -> PromptSession[str]:
        session: PromptSession[str] = PromptSession(
            input=self._source,
            output=prompt_output(),
            interrupt_exception=Interrupted,
            eof_exception=Left,
            **options,
        )
        session.app.before_render += self._show_above
        return session


def _leave_search(session: PromptSession[str]) -> None:
    """A prompt that ended within Ctrl-R would hand the keys of the next one to that search."""
    session.layout.focus(session.default_buffer)
