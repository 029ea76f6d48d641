"""What keys do: at the two kinds of prompts, and while a turn runs and nobody prompts. Draws nothing."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys

__all__ = ["Interrupted", "Left", "TurnKeys", "answer_keys", "message_keys"]

_ESCAPE_SECONDS = 0.1
"""A lone ESC byte this long is the key Esc and not the beginning of a sequence."""


class Interrupted(Exception):
    """Ctrl-C at a prompt."""


class Left(Exception):
    """Ctrl-D at a prompt."""


Edit = Callable[[Buffer], Coroutine[object, object, None]]
"""Opens what is typed in an editor."""


def message_keys(suspend: Callable[[], None], edit: Edit) -> KeyBindings:
    """The keys of the prompt for messages, beside those that edit the line."""
    keys = _prompt_keys(suspend)

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
            event.app.exit(exception=Interrupted, style="class:aborting")

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
        event.app.exit(exception=Left, style="class:exiting")

    return keys


def _prompt_keys(suspend: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-z")
    def _stop_job(event: KeyPressEvent) -> None:
        event.app.renderer.erase()
        suspend()
        event.app.renderer.reset()

    return keys


class TurnKeys:
    """Takes keys in while nobody prompts for them; whatever nobody takes waits for the next prompt."""

    def __init__(
        self,
        source: Input,
        on_stop: Callable[[], None],
        on_line: Callable[[str], bool],
        on_typed: Callable[[str], None],
        on_suspend: Callable[[], None],
    ) -> None:
        self._source = source
        self._on_stop = on_stop
        self._on_line = on_line
        self._on_typed = on_typed
        self._on_suspend = on_suspend
        self._kept: list[KeyPress] = []
        self._flushing: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Read keys meanwhile, first those that were read with the last line and not used."""
        with self._source.attach(self._read):
            try:
                self._sort(get_typeahead(self._source))
                yield
            finally:
                self._finish()

    def _read(self) -> None:
        self._sort(self._source.read_keys())
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
            if press.key in (Keys.Escape, Keys.ControlC):
                self._on_stop()
            elif press.key is Keys.ControlZ:
                self._on_suspend()
            elif press.key is Keys.Enter and self._kept and self._kept[-1].key == "\\":
                self._kept[-1] = KeyPress(Keys.BracketedPaste, "\n")
            elif press.key is Keys.Enter and self._on_line(_line_of(self._kept)):
                self._kept.clear()
            else:
                self._kept.append(press)
        if keys:
            self._on_typed(_line_of(self._kept))


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
