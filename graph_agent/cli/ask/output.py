"""What prompts are drawn on: the terminal as prompt_toolkit writes to it, and the paste mode it is kept in.

Knows nothing of prompts or keys.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output

from graph_agent.cli.plainness import moves_cursor

__all__ = ["paste_in_brackets", "paste_plainly", "prompt_output"]

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
    if not moves_cursor():
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
