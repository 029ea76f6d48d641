"""The keyboard of one terminal: whole escape sequences, pastes, and the history file of what was typed."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from pathlib import Path

from prompt_toolkit.history import History
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

__all__ = ["Keyboard", "TypedHistory", "decode_sequences", "typed_text"]

_PASTE_LENGTH = 32
"""So many characters at once are typed by nobody."""
_LINE_BREAK = (Keys.Escape, Keys.ControlM)
"""Alt-Enter, and Shift-Enter where the terminal tells it."""
_KITTY_KEY = re.compile(r"(\d+)[\d:]*(?:;(\d+)(?::(\d))?)?u")
_RELEASED = "3"
_SHIFT, _ALT, _CTRL = 1, 2, 4
_KITTY_NAMED: dict[int, tuple[tuple[Keys, ...], tuple[Keys, ...]]] = {
    9: ((Keys.ControlI,), (Keys.BackTab,)),
    13: ((Keys.ControlM,), _LINE_BREAK),
    27: ((Keys.Escape,), ()),
    127: ((Keys.ControlH,), (Keys.Escape, Keys.ControlH)),
}
"""Code of a key to the keys it stands for, alone and with a modifier."""
_READ_BYTES = 2 * 1024 * 1024
"""So much of the end of the history file is read: years of typing, or two large pastes."""

ANSI_SEQUENCES["\x1b[27;2;13~"] = _LINE_BREAK  # xterm's Shift-Enter, which prompt_toolkit takes for Enter


class Keyboard(Vt100Input):
    """What is typed at one terminal."""

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come."""
        return _group_pastes(decode_sequences(super().read_keys()))


def decode_sequences(keys: list[KeyPress]) -> list[KeyPress]:
    """The keys with each escape sequence that prompt_toolkit does not know as the key it stands for, or as none.

    prompt_toolkit hands on such a sequence as Escape and characters, and Escape stops a turn.
    """
    decoded: list[KeyPress] = []
    position = 0
    while position < len(keys):
        if body := _sequence_body(keys, position):
            decoded += [KeyPress(key) for key in _kitty_keys(body)]
            position += len("\x1b[") + len(body)
        else:
            decoded.append(keys[position])
            position += 1
    return decoded


def _sequence_body(keys: list[KeyPress], start: int) -> str:
    """What follows `ESC [` in the control sequence that begins here; empty where none does."""
    if [press.key for press in keys[start : start + 2]] != [Keys.Escape, "["]:
        return ""
    body = ""
    for press in keys[start + 2 :]:
        if len(press.key) != 1 or not " " <= press.key <= "~":
            break
        body += press.key
        if press.key >= "@":
            return body
    return ""


def _kitty_keys(body: str) -> tuple[str, ...]:
    """The keys of a sequence of the kitty protocol; none for a key that is let go, a focus report and others."""
    found = _KITTY_KEY.fullmatch(body)
    if found is None or found[3] == _RELEASED:
        return ()
    code, modifiers = int(found[1]), int(found[2] or 1) - 1
    if code in _KITTY_NAMED:
        keys = _KITTY_NAMED[code]
        return keys[1 if modifiers else 0]
    character = chr(code)
    alt = (Keys.Escape,) if modifiers & _ALT else ()
    if modifiers & _CTRL:
        name = f"c-{character}"
        return (*alt, Keys(name)) if name in set(Keys) else ()
    if modifiers & _SHIFT:
        character = character.upper()
    return (*alt, character) if character.isprintable() else ()


def _group_pastes(keys: list[KeyPress]) -> list[KeyPress]:
    """The same keys, with each long run of characters as one paste: key by key it would take a minute to insert.

    The first and last character stay keys: they may belong to the key before, after Escape, or to the one behind,
    a backslash.
    """
    if len(keys) < _PASTE_LENGTH:
        return keys

    def is_character(press: KeyPress) -> bool:
        return not isinstance(press.key, Keys) and press.key.isprintable()

    grouped: list[KeyPress] = []
    for is_text, run in groupby(keys, key=is_character):
        together = list(run)
        if is_text and len(together) >= _PASTE_LENGTH:
            first, *middle, last = together
            text = "".join(press.key for press in middle)
            together = [first, KeyPress(Keys.BracketedPaste, text), last]
        grouped += together
    return grouped


def typed_text(keys: Iterable[KeyPress]) -> str:
    """What the keys would have written into an empty line; Enter breaks the line."""
    text = ""
    for press in keys:
        if press.key is Keys.Backspace:
            text = text[:-1]
        elif press.key is Keys.BracketedPaste:
            text += press.data.replace("\r\n", "\n").replace("\r", "\n")
        elif press.key is Keys.Enter:
            text += "\n"
        elif len(press.key) == 1:
            text += press.key
    return text


class TypedHistory(History):
    """The history file, in the format of prompt_toolkit's FileHistory; no fault of the file stops a chat.

    Anything but a plain file is neither read nor written: a pipe would block, a device never ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def load_history_strings(self) -> Iterable[str]:
        """What can be read of it, the newest first."""
        try:
            with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
                skipped = os.fstat(file.fileno()).st_size - _READ_BYTES
                file.seek(max(skipped, 0))
                data = file.read(_READ_BYTES)
        except OSError:
            return []
        if skipped > 0:  # The first entry may have lost its beginning.
            data = data.partition(b"\n\n")[2]
        entries: list[list[str]] = [[]]
        for line in data.split(b"\n"):
            if line.startswith(b"+"):
                entries[-1].append(line[1:].decode("utf-8", "replace"))
            elif entries[-1]:
                entries.append([])
        return ["\n".join(lines) for lines in reversed(entries) if lines]

    def store_string(self, string: str) -> None:
        """Append it in one write, if the file can be written."""
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now().astimezone()}\n{lines}".encode(errors="replace")
        with contextlib.suppress(OSError):
            descriptor = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(entry)

    def _open(self, flags: int) -> int:
        """A descriptor of the plain file; never waits."""
        descriptor = os.open(self._path, flags | os.O_NONBLOCK, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{self._path} is not a plain file")
        return descriptor
