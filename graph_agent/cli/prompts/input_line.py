"""A line of input as terminals can draw it: edited in place, completed, with a line of status below it.

What every kind of line of input is typed with. Values only.

What was typed at the prompt, kept in a file for later chats. No fault of that file stops a chat.

Whatever is no plain file is neither read nor written, as a pipe would be waited for and a device read without end.

What was typed, or taken back, and not sent: the next line that is typed begins with it. Draws nothing.

What prompts are drawn on: the terminal as prompt_toolkit writes to it, and the paste mode it is kept in.

Knows nothing of prompts or keys.
"""

import asyncio
import contextlib
import importlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from graph_agent.cli.prompts.choices import folded_prompt
from graph_agent.cli.prompts.keys import InputClosed, InputInterrupted, TakeBack, answer_keys, line_of, message_keys
from graph_agent.cli.render.escape import escape, supports_escapes

__all__ = [
    "DrawnLine",
    "Lines",
    "TypedHistory",
    "Unfinished",
    "paste_in_brackets",
    "paste_plainly",
    "prompt_output",
]


class Unfinished:
    """The beginning of one terminal's next line."""

    def __init__(self, source: Input) -> None:
        self._source = source
        self._text = ""
        self._taking: asyncio.Task[None] | None = None
        self.source_of_more: TakeBack | None = None
        """Where a message that waits can be taken back from, while one is typed; None while none waits."""
        self.put: Callable[[str], bool] = _nowhere
        """Puts a text on the line that is typed; false where none is, or it was just entered."""

    def keep_typed_ahead(self) -> None:
        """What was read until now is for the next message and for no question; no line of it is sent unseen."""
        text = line_of([_as_text(press) for press in get_typeahead(self._source)])
        self._text += text if text.strip() else ""

    def keep_all_typed(self) -> None:
        """The same of every key that has arrived, whether it was read already or not."""
        keys = get_typeahead(self._source)
        while more := self._source.read_keys():
            keys += more
        store_typeahead(self._source, [*keys, *self._source.flush_keys()])
        self.keep_typed_ahead()

    def begin(self) -> None:
        """A line begins: what was kept comes first on it."""
        if self._text:
            first = KeyPress(Keys.BracketedPaste, self._text)
            self._text = ""
            store_typeahead(self._source, [first, *get_typeahead(self._source)])

    def take_back(self) -> bool:
        """Whether a message that waits is being taken back; it comes onto the line, or onto the next one."""
        if self.source_of_more is None:
            return False
        if self._taking is None or self._taking.done():
            # Not a task of the line's: once begun it must not end with the line, or the message would be lost.
            self._taking = asyncio.ensure_future(self._take(self.source_of_more))
        return True

    async def _take(self, take_back: TakeBack) -> None:
        text = await take_back()
        if text is None:
            self.source_of_more = None
        elif not self.put(text):
            self._text += text

    @contextlib.contextmanager
    def put_by(self, put: Callable[[str], bool]) -> Iterator[None]:
        """A line is typed in this block, onto which this puts a text."""
        self.put = put
        try:
            yield
        finally:
            self.put = _nowhere


def _nowhere(_text: str) -> bool:
    return False


def _as_text(press: KeyPress) -> KeyPress:
    return KeyPress(Keys.BracketedPaste, "\n") if press.key is Keys.Enter else press


@dataclass(frozen=True, slots=True)
class Lines:
    """The keyboard of one terminal."""

    source: Input
    suspend: Callable[[], None]
    """Stops this job until the shell takes it up again."""
    history: History
    unfinished: Unfinished


_BRACKETS_ON, _BRACKETS_OFF = "\x1b[?2004h", "\x1b[?2004l"


def prompt_output() -> Output:
    """The terminal this process writes to."""
    colors = ColorDepth.from_env()
    return _Output(sys.stdout, _size, os.environ.get("TERM"), default_color_depth=colors, enable_cpr=False)


@contextlib.contextmanager
def paste_in_brackets() -> Iterator[None]:
    """A paste of several lines is told from typed ones, between two prompts too."""
    with _paste_mode(_BRACKETS_ON, _BRACKETS_OFF):
        yield


@contextlib.contextmanager
def paste_plainly() -> Iterator[None]:
    """Within `paste_in_brackets`: the terminal belongs to a program that may know nothing of brackets."""
    with _paste_mode(_BRACKETS_OFF, _BRACKETS_ON):
        yield


@contextlib.contextmanager
def _paste_mode(inside: str, after: str) -> Iterator[None]:
    if not supports_escapes():
        yield
        return
    sys.stdout.write(inside)
    sys.stdout.flush()
    try:
        yield
    finally:
        # A terminal that is gone has no mode to be put back.
        with contextlib.suppress(OSError):
            sys.stdout.write(after)
            sys.stdout.flush()


def _size() -> Size:
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns, lines = 0, 0
    return Size(rows=lines or 24, columns=columns or 80)


class _Output(Vt100_Output):
    """Asks no terminal for the cursor's position: those that do not answer would earn delays and a warning.

    Leaves brackets around pastes switched on when a prompt ends: what is pasted a moment later is one paste, too.
    """

    def get_rows_below_cursor_position(self) -> int:
        """Room for the line and the status below it; the terminal scrolls where there is less."""
        return 2

    def disable_bracketed_paste(self) -> None:
        """Whoever holds the terminal does it, once."""


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
        fold = folded_prompt(prompt, self._answers.output.get_size().columns)
        _leave_search(self._answers)
        try:
            text: str = await self._answers.prompt_async([(_PROMPT_STYLE, fold)])
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
        editing = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.prompts.editor")
        try:
            async with in_terminal():
                with paste_plainly():
                    text: str = await editing.edit_text(line.text)
        except editing.EditFailed as failure:
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
            interrupt_exception=InputInterrupted,
            eof_exception=InputClosed,
            **options,
        )
        session.app.before_render += self._show_above
        return session


def _leave_search(session: PromptSession[str]) -> None:
    """A prompt that ended within Ctrl-R would hand the keys of the next one to that search."""
    session.layout.focus(session.default_buffer)


_READ_BYTES = 2 * 1024 * 1024
"""So much of the file's end is read: years of typing, or two large pastes."""


class TypedHistory(History):
    """The file, in the form that prompt_toolkit writes: a comment with the time, then each line behind a plus."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def load_history_strings(self) -> Iterable[str]:
        """What can be read of it, the newest first."""
        entries: list[list[str]] = [[]]
        for line in self._end().split(b"\n"):
            if line.startswith(b"+"):
                entries[-1].append(line[1:].decode("utf-8", "replace"))
            elif entries[-1]:
                entries.append([])
        return ["\n".join(lines) for lines in reversed(entries) if lines]

    def store_string(self, string: str) -> None:
        """Append it, in one write, where the file lets itself be written."""
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now().astimezone()}\n{lines}".encode(errors="replace")
        try:
            descriptor = self._opened(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(entry)
        except OSError:
            return

    def _end(self) -> bytes:
        try:
            with os.fdopen(self._opened(os.O_RDONLY), "rb") as file:
                beyond = os.fstat(file.fileno()).st_size - _READ_BYTES
                file.seek(max(beyond, 0))
                data = file.read(_READ_BYTES)
        except OSError:
            return b""
        # The first entry may have lost its beginning.
        return data.partition(b"\n\n")[2] if beyond > 0 else data

    def _opened(self, flags: int) -> int:
        """A descriptor of the plain file; never waits."""
        descriptor = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._path} is no plain file")
        return descriptor
