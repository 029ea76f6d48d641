"""Write to the terminal: prompt_toolkit's output, what the keyboard reports, and a line that is only echoed."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Self

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.cells import cell_len

from graph_agent.cli.render.escape import supports_escapes

__all__ = ["EchoedLine", "full_reports", "plain_input", "terminal_output"]

_BRACKETS_ON, _BRACKETS_OFF = "\x1b[?2004h", "\x1b[?2004l"
_KEYS_ON, _KEYS_OFF = "\x1b[>4;1m\x1b[>1u", "\x1b[<u\x1b[>4m"
"""Ctrl-Enter and Shift-Enter as keys of their own: as xterm does it (modifyOtherKeys), and the kitty protocol."""
_KNOWS_NO_KEYS = ("linux", "cygwin", "vt52", "vt100", "vt220")
"""Terminals that would print these sequences."""


def terminal_output() -> Output:
    """The terminal this process writes to."""
    colors = ColorDepth.from_env()
    return _Output(sys.stdout, _size, os.environ.get("TERM"), default_color_depth=colors, enable_cpr=False)


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


@contextlib.contextmanager
def full_reports(*, is_on: bool = True) -> Iterator[None]:
    """The terminal reports pastes, also between two prompts, and keys with their modifiers; not so afterwards."""
    if not supports_escapes():
        yield
        return
    has_keys = os.environ.get("TERM", "").lower() not in _KNOWS_NO_KEYS
    on = f"{_BRACKETS_ON}{_KEYS_ON if has_keys else ''}"
    off = f"{_KEYS_OFF if has_keys else ''}{_BRACKETS_OFF}"
    _write(on if is_on else off)
    try:
        yield
    finally:
        # A terminal that is gone has no mode to be put back.
        with contextlib.suppress(OSError):
            _write(off if is_on else on)


def plain_input() -> contextlib.AbstractContextManager[None]:
    """Within `full_reports`: the terminal is lent to a program that may not know them."""
    return full_reports(is_on=False)


class EchoedLine:
    """A line on a plain terminal: nothing that was written changes but the end of the line."""

    def __init__(self, prompt: str, buffer: Buffer) -> None:
        self._prompt = prompt
        self._buffer = buffer
        self._shown = ""

    def __enter__(self) -> Self:
        _write(self._prompt)
        self._buffer.on_text_changed += self._update
        return self

    def __exit__(self, *_: object) -> None:
        self._buffer.on_text_changed -= self._update
        _write("\n")

    def interrupt(self, show: Callable[[], None]) -> None:
        """Print something; the line continues below it."""
        _write("\n")
        show()
        _write(f"{self._prompt}{self._shown}")

    def _update(self, buffer: Buffer) -> None:
        """Erase what differs at the end and write the rest; lines above the last are out of reach."""
        before, self._shown = self._shown, buffer.text
        same = len(os.path.commonprefix([before, self._shown]))  # noqa: RUF071 - characters are compared
        if "\n" in before[same:]:
            _write(f"\n{self._prompt}{self._shown}")
        else:
            cells = cell_len(before[same:])
            _write("\b" * cells + " " * cells + "\b" * cells + self._shown[same:])


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
