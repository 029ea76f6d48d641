"""A line of input without any drawing: each key writes what it adds, and a backspace takes it back.

For screen readers and dumb terminals: nothing that was written changes but the end of the line. Completes nothing.
"""

import asyncio
import shutil
import sys
from collections.abc import Callable

from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.cells import cell_len

from graph_agent.cli.prompts.choices import folded_prompt
from graph_agent.cli.prompts.input_line import Lines
from graph_agent.cli.prompts.keys import InputClosed, InputInterrupted

__all__ = ["PlainLine"]


class PlainLine:
    """The one line that is typed at a time."""

    def __init__(self, lines: Lines) -> None:
        self._source = lines.source
        self._suspend = lines.suspend
        self._history = lines.history
        self._unfinished = lines.unfinished
        self._prompt, self._text = "", ""
        self._is_answer = False
        self._earlier: list[str] = []
        self._place = 0
        self._is_escaped = False
        self._entered: asyncio.Future[str] | None = None

    @property
    def is_read(self) -> bool:
        """Whether a line is being typed."""
        return self._entered is not None

    async def message(self) -> str:
        """Read a message, which is remembered; raises Interrupted or Left on an empty line."""
        with self._unfinished.put_by(self._put):
            text = await self._entered_at("> ", is_answer=False)
        if text.strip():
            self._history.store_string(text)
        return text

    async def answer(self, prompt: str) -> str:
        """Read an answer; raises Interrupted or Left, with something typed, too."""
        return await self._entered_at(folded_prompt(prompt, shutil.get_terminal_size().columns), is_answer=True)

    async def _entered_at(self, prompt: str, *, is_answer: bool) -> str:
        self._prompt, self._text, self._is_answer = prompt, "", is_answer
        self._earlier = [] if is_answer else list(self._history.load_history_strings())
        self._place, self._is_escaped = 0, False
        self._entered = entered = asyncio.get_running_loop().create_future()
        _write(prompt)
        try:
            with self._source.attach(self._read):
                self._take(get_typeahead(self._source))
                text: str = await entered
                return text
        finally:
            self._entered = None
            _write("\n")

    def above(self, show: Callable[[], None]) -> None:
        """Print something; the line goes on below it."""
        _write("\n")
        show()
        _write(f"{self._prompt}{self._text}")

    def _read(self) -> None:
        keys = self._source.read_keys()
        self._take(keys)
        if self._source.closed and self._entered is not None and not self._entered.done():
            self._entered.set_exception(InputClosed)

    def _take(self, keys: list[KeyPress]) -> None:
        for place, press in enumerate(keys):
            if self._entered is None or self._entered.done():
                store_typeahead(self._source, keys[place:])
                return
            self._press(press, self._entered)
            self._is_escaped = press.key is Keys.Escape

    def _press(self, press: KeyPress, entered: "asyncio.Future[str]") -> None:
        match press.key:
            case Keys.Enter | Keys.ControlJ if self._text.endswith("\\") and not self._is_answer:
                self._text = self._text[:-1]
                self._add("\n")
            case Keys.Enter | Keys.ControlJ if not self._is_escaped:
                entered.set_result(self._text)
            case Keys.Enter | Keys.ControlJ:
                self._add("\n")
            case Keys.ControlC if self._text and not self._is_answer:
                self._replace("")
            case Keys.ControlC:
                entered.set_exception(InputInterrupted)
            case Keys.ControlD if self._is_answer or not self._text:
                entered.set_exception(InputClosed)
            case _:
                self._edit(press)

    def _edit(self, press: KeyPress) -> None:
        match press.key:
            case Keys.Backspace:
                self._replace(self._text[:-1])
            case Keys.ControlU:
                self._replace("")
            case Keys.ControlW:
                self._replace(self._text.rstrip().rpartition(" ")[0])
            case Keys.Up | Keys.Down:
                self._recall(1 if press.key is Keys.Up else -1)
            case Keys.ControlZ:
                self._suspend()
                self.above(lambda: None)
            case Keys.BracketedPaste:
                self._add(press.data.replace("\r\n", "\n").replace("\r", "\n"))
            case key if len(key) == 1 and key.isprintable():
                self._add(key)
            case _:
                pass

    def _recall(self, further: int) -> None:
        """The message before, or after, in the history; below its newest is what waits, or an empty line."""
        if further > 0 and not (self._is_answer or self._text) and self._unfinished.take_back():
            return
        self._place = min(max(self._place + further, 0), len(self._earlier))
        self._replace(self._earlier[self._place - 1] if self._place else "")

    def _put(self, text: str) -> bool:
        if self._entered is None or self._entered.done():
            return False
        self._replace(text + self._text)
        return True

    def _add(self, text: str) -> None:
        self._text += text
        _write(text)

    def _replace(self, text: str) -> None:
        """Take back what differs at the end and write the rest; lines above the last are out of reach."""
        same = _common(self._text, text)
        gone, new = self._text[same:], text[same:]
        self._text = text
        if "\n" in gone:
            _write(f"\n{self._prompt}{text}")
        else:
            cells = cell_len(gone)
            _write("\b" * cells + " " * cells + "\b" * cells + new)


def _common(one: str, other: str) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
