"""Write to the terminal: prompt_toolkit's output, what it reports, a line that is only echoed, notifications."""

import contextlib
import os
import subprocess
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Literal, Self

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle, DynamicStyle, Style
from rich.cells import cell_len

from graph_agent.cli.render.themes import color_of
from graph_agent.cli.views.table import supports_escapes
from graph_agent.wording import escape
from tools.programs import find_program

__all__ = [
    "BELL",
    "EchoedLine",
    "Notifier",
    "NotifyMethod",
    "chosen_method",
    "full_reports",
    "notification",
    "plain_input",
    "prompt_style",
    "reports_more",
    "terminal_output",
]

_REPORTS_ON, _REPORTS_OFF = "\x1b[?2004h\x1b[?1004h", "\x1b[?1004l\x1b[?2004l"
"""Brackets around pastes, and reports of the focus."""
_KEYS_ON, _KEYS_OFF = "\x1b[>4;1m\x1b[>1u", "\x1b[<u\x1b[>4m"
"""Ctrl-Enter and Shift-Enter as keys of their own: as xterm does it (modifyOtherKeys), and the kitty protocol."""
_ANSI_NAMES = {"cyan": "ansicyan", "dim": "ansibrightblack", "green": "ansigreen", "red": "ansired"}
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


def prompt_style() -> BaseStyle:
    """Colours of the prompt and of menus, those of the current theme at any time."""

    def style() -> BaseStyle:
        names = {"prompt": "cyan", "muted": "dim", "added": "green", "removed": "red"}
        return _style(*((role, color_of(name) or _ANSI_NAMES[name]) for role, name in names.items()))

    return DynamicStyle(style)


@cache
def _style(*roles: tuple[str, str]) -> BaseStyle:
    return Style(list(roles))


def reports_more() -> bool:
    """Whether the terminal can be asked about keys and colours; others would print the question."""
    return supports_escapes() and os.environ.get("TERM", "").lower() not in _KNOWS_NO_KEYS


@contextlib.contextmanager
def full_reports(*, is_on: bool = True) -> Iterator[None]:
    """The terminal reports pastes, also between two prompts, the focus, and keys with their modifiers."""
    if not supports_escapes():
        yield
        return
    has_keys = reports_more()
    on = f"{_REPORTS_ON}{_KEYS_ON if has_keys else ''}"
    off = f"{_KEYS_OFF if has_keys else ''}{_REPORTS_OFF}"
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._buffer.on_text_changed -= self._update
        if kind is CancelledError:
            self._erase()  # What is typed is on the next line again.
        else:
            _write("\n")

    def interrupt(self, show: Callable[[], None]) -> None:
        """Print something; the line continues below it."""
        self._erase()
        show()
        _write(f"{self._prompt}{self._shown}")

    def _erase(self) -> None:
        """Erase prompt and line; where they take more than one line of the terminal, leave them above."""
        cells = cell_len(f"{self._prompt}{self._shown}")
        if "\n" in self._shown or cells >= _size().columns:
            _write("\n")
        else:
            _write("\b" * cells + " " * cells + "\b" * cells)

    def _update(self, buffer: Buffer) -> None:
        """Erase what differs at the end and write the rest; lines above the last are out of reach."""
        before, self._shown = self._shown, buffer.text
        same = len(os.path.commonprefix([before, self._shown]))  # noqa: RUF071 - characters are compared
        if "\n" in before[same:]:
            _write(f"\n{self._prompt}{self._shown}")
        else:
            cells = cell_len(before[same:])
            _write("\b" * cells + " " * cells + "\b" * cells + self._shown[same:])


BELL = "\a"
NotifyMethod = Literal["auto", "osc9", "osc777", "bell", "off"]

_KEEP_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b]2;\x07\x1b[23;2t"
"""A terminal that keeps no titles is left with an empty one, and shows its own."""
_SHOWN_CHARS = 60
_OSC9_PROGRAMS = ("iterm.app", "wezterm", "ghostty")
_OSC9_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "WEZTERM_PANE", "ITERM_SESSION_ID", "GHOSTTY_RESOURCES_DIR")
_OSC777_TERMS = ("rxvt", "foot")
_TMUX_S = 1.0


class Notifier:
    """Notifies the user that the chat waits while another window has the focus: title, notification, or bell.

    All texts come from here but for the name of the folder, which is escaped. With the focus nothing is sent.
    """

    def __init__(self, is_focused: Callable[[], bool], method: Callable[[], NotifyMethod]) -> None:
        self._is_focused = is_focused
        self._method = method
        """Asked only when there is something to say: it reads the settings."""
        self._has_title = False

    def notify(self, what: str, folder: str, *, has_rung: bool = False) -> None:
        """Say what happened in a folder; where the bell has rung for it, it does not ring again."""
        method = "off" if self._is_focused() or not _may_notify() else self._method()
        if method == "off":
            return
        if not self._has_title:
            self._has_title = True
            _write(_KEEP_TITLE)
        sequence = notification(method, what, folder, os.environ)
        _write(f"\x1b]2;{what} - graph-agent\x07{'' if has_rung and sequence == BELL else sequence}")

    def restore_title(self) -> None:
        """Reset the title: the terminal has the focus again, or the chat ends."""
        if self._has_title:
            self._has_title = False
            _write(_RESTORE_TITLE)


def chosen_method(environment: Mapping[str, str]) -> NotifyMethod:
    """The method that the terminal supports, by its environment; the bell works everywhere."""
    term = environment.get("TERM", "").lower()
    program = environment.get("TERM_PROGRAM", "").lower()
    if program in _OSC9_PROGRAMS or any(environment.get(name) for name in _OSC9_VARIABLES):
        return "osc9"
    return "osc777" if term.startswith(_OSC777_TERMS) or environment.get("VTE_VERSION") else "bell"


def notification(method: NotifyMethod, what: str, folder: str, environment: Mapping[str, str]) -> str:
    """The sequence; within tmux or screen one that reaches the terminal around them, or the bell."""
    chosen = chosen_method(environment) if method == "auto" else method
    body = f"{what} in {folder}".replace(";", ",")
    text = escape(body if len(body) <= _SHOWN_CHARS else f"{body[: _SHOWN_CHARS - 1]}…")
    sequence = {"osc9": f"\x1b]9;{text}\x07", "osc777": f"\x1b]777;notify;graph-agent;{text}\x07"}.get(chosen, BELL)
    if sequence == BELL or not (environment.get("TMUX") or environment.get("STY")):
        return sequence
    if environment.get("TMUX") and _tmux_passes_through():
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    return BELL


def _tmux_passes_through() -> bool:
    """Whether the surrounding tmux passes unknown sequences through."""
    if (tmux := find_program("tmux")) is None:
        return False
    try:
        command = [tmux, "show-options", "-Apv", "allow-passthrough"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TMUX_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() in ("on", "all")


def _may_notify() -> bool:
    return sys.stdout.isatty() and supports_escapes()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
