"""What was typed, or taken back, and not sent: the next line that is typed begins with it. Draws nothing."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from graph_agent.cli.ask.keys import TakeBack, line_of

__all__ = ["Unfinished"]


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
