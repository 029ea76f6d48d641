"""What keys do: at the two kinds of prompts, and while a turn runs and nobody prompts. Draws nothing."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys

__all__ = [
    "InputClosed",
    "InputInterrupted",
    "Put",
    "TakeBack",
    "TurnKeys",
    "Watch",
    "answer_keys",
    "line_of",
    "message_keys",
]

_ESCAPE_SECONDS = 0.1
"""A lone ESC byte this long is the key Esc and not the beginning of a sequence."""


class InputInterrupted(Exception):
    """Ctrl-C at a prompt."""


class InputClosed(Exception):
    """Ctrl-D at a prompt."""


Edit = Callable[[Buffer], Coroutine[object, object, None]]
"""Opens what is typed in an editor."""


Put = Callable[[str], None]
"""Puts a text before what stands in the line, so that it can be edited there."""
TakeBack = Callable[[], Awaitable[str | None]]
"""Takes the newest message back that waits; None where none does any more."""


def message_keys(suspend: Callable[[], None], edit: Edit, take_back: Callable[[], bool]) -> KeyBindings:
    """The keys of the prompt for messages, beside those that edit the line.

    Up on an empty line asks to `take_back` what waits; where nothing does it goes through the history, as ever.
    """
    keys = _prompt_keys(suspend)

    @keys.add("up", filter=~is_searching & Condition(lambda: not get_app().current_buffer.text))
    def _back_or_up(event: KeyPressEvent) -> None:
        if not take_back():
            event.current_buffer.auto_up(count=event.arg)

    @keys.add("c-x", "c-e")
    def _open_editor(event: KeyPressEvent) -> None:
        event.app.create_background_task(edit(event.current_buffer))

    @keys.add("enter", filter=Condition(_goes_on))
    def _go_on(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor()
        event.current_buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def _break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=~is_searching)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=InputInterrupted, style="class:aborting")

    return keys


def _goes_on() -> bool:
    """Whether the line ends with a backslash, as in a shell."""
    document = get_app().current_buffer.document
    return document.text_before_cursor.endswith("\\") and not document.text_after_cursor


def answer_keys(suspend: Callable[[], None]) -> KeyBindings:
    """The keys of the prompt for answers: leaving works with something typed, too."""
    keys = _prompt_keys(suspend)

    @keys.add("c-d")
    def _leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=InputClosed, style="class:exiting")

    return keys


def _prompt_keys(suspend: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-z")
    def _stop_job(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
        suspend()
        event.app.renderer.reset()

    return keys


def _nothing(*_: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told of keys while a turn runs."""

    stop: Callable[[], None]
    """Esc or Ctrl-C."""
    line: Callable[[str], bool] = lambda _: False
    """A line was entered; whether somebody takes it."""
    typed: Callable[[str], None] = _nothing
    """The line that is typed stands like this now."""
    suspend: Callable[[], None] = _nothing
    """Ctrl-Z."""
    back: Callable[[Put], None] = _nothing
    """Up on an empty line: what was queued last may be put on it."""


class TurnKeys:
    """Takes keys in while nobody prompts for them; whatever nobody takes waits for the next prompt."""

    def __init__(self, source: Input, watch: Watch) -> None:
        self._source = source
        self._watch = watch
        self._kept: list[KeyPress] = []
        self._flushing: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Read keys meanwhile, first those that were read with the last line and not used."""
        with self._source.attach(self._read):
            try:
                self._sort(get_typeahead(self._source))
                # An Esc that came with the last line is still taken for the beginning of a sequence.
                self._flush_soon()
                yield
            finally:
                self._finish()

    def _read(self) -> None:
        self._sort(self._source.read_keys())
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        self._flushing = asyncio.get_running_loop().call_later(_ESCAPE_SECONDS, self._flush)

    def _finish(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
        self._flush()
        store_typeahead(self._source, self._kept)

    def _flush(self) -> None:
        self._sort(self._source.flush_keys())

    def _sort(self, keys: list[KeyPress]) -> None:
        for press in keys:
            match press.key:
                case Keys.Escape | Keys.ControlC:
                    self._watch.stop()
                case Keys.ControlZ:
                    self._watch.suspend()
                case Keys.Up if not line_of(self._kept):
                    self._watch.back(self._put)
                case Keys.Enter if self._kept and self._kept[-1].key == "\\":
                    self._kept[-1] = KeyPress(Keys.BracketedPaste, "\n")
                case Keys.Enter if self._watch.line(line_of(self._kept)):
                    self._kept.clear()
                case _:
                    self._kept.append(press)
        if keys:
            self._watch.typed(line_of(self._kept))

    def _put(self, text: str) -> None:
        self._kept.insert(0, KeyPress(Keys.BracketedPaste, text))
        self._watch.typed(line_of(self._kept))


def line_of(keys: list[KeyPress]) -> str:
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
