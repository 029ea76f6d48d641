"""The keyboard of one terminal: whole escape sequences, pastes and their marks, completion, the history.

prompt_toolkit hands on a sequence that it does not know as Escape and characters. Here each is decoded whole: it is
the keys it stands for in xterm, rxvt, the Linux console or the kitty protocol, or no key at all.
"""

import asyncio
import importlib
import re
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol, TextIO

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, emacs_mode, is_searching, vi_insert_mode
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from graph_agent.errors import AgentError

__all__ = [
    "ALT_S",
    "BREAK_LINE",
    "CTRL_ENTER",
    "ESCAPE_S",
    "FOCUS_IN",
    "FOCUS_OUT",
    "EarlyLines",
    "InputCancelled",
    "InputClosed",
    "InputInterrupted",
    "KeyDecoder",
    "Keyboard",
    "Pastes",
    "TakeBack",
    "TurnKeys",
    "bind_leaving",
    "bind_loading",
    "clear",
    "end_of",
    "ends_with_backslash",
    "is_empty",
    "typed_text",
    "vi_mark",
]

_PASTE_LENGTH = 32
"""So many characters at once are typed by nobody."""
_LONG_PASTE = 1000
"""So many are no lines typed in one breath either; and the terminal may hand them on in pieces."""
_PIECES_S = 0.05
"""What comes sooner after such a paste is the rest of it."""
_LINE_ENDS = (Keys.ControlM, Keys.ControlJ)

_Keys = tuple[Keys | str, ...]
_KEY_NAMES = frozenset(key.value for key in Keys)
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
_ESC, _PASTE_END = "\x1b", "\x1b[201~"
_PASTE_BEGIN = "\x1b[200~"
_SEQUENCE = re.compile(
    r"""\x1b(?:
        \[(?: \[[A-E]                               # function keys of the Linux console
            | M...                                  # a mouse report of the oldest kind
            | (?P<shifted>\d+)\$                    # rxvt with Shift
            | (?![M[]) (?P<values>[0-?]*) [ -/]* (?P<final>[@-~]) )
      | O (?P<modifier>\d{0,4}) (?P<key>[!-~])          # arrows, function keys and the keypad in application mode
      | [\]P^_X] [^\x00-\x1f]* (?:\x07 | \x1b\\)    # what a terminal answers to a question of an earlier program
    )""",
    re.VERBOSE | re.DOTALL,
)
_BEGINNING = re.compile(r"\x1b(?:\[(?:M.{0,2}|\[|[0-?]*[ -/]*)|O\d*|[\]P^_X][^\x00-\x1f]*\x1b?)?", re.DOTALL)
"""What may become a sequence with the characters to come."""
_INTRODUCER_LENGTH = 2
"""A sequence that stays this short is a key with Alt."""
_VALUES = re.compile(r"(\d{0,7})(?::(\d{0,7}))?(?::\d*)?(?:;(\d{0,4})(?::(\d))?)?(?:;((?:\d{0,7}:?)*))?")
"""Key, the same with Shift, modifiers, press or release, and text or the key of xterm's 27."""
_RELEASED = "3"
_SHIFT, _ALT, _CTRL, _SUPER_HYPER, _META, _CAPS_LOCK = 1, 2, 4, 8 | 16, 32, 64
_RXVT_MODIFIERS = {"^": _CTRL, "@": _SHIFT | _CTRL}
_OTHER_KEY = "27"
CTRL_ENTER, BREAK_LINE = Keys.ControlF15, Keys.ControlF3
"""Stand for Ctrl-Enter, and for Shift-Enter and Alt-Enter where the terminal tells them: prompt_toolkit has
no names for them, and these two come from no terminal."""
_BACKSPACE: dict[int, _Keys] = {
    **dict.fromkeys((0, _SHIFT), (Keys.ControlH,)),
    **dict.fromkeys((_ALT, _CTRL), (Keys.Escape, Keys.ControlH)),
}
_NAMED: dict[str, dict[int, _Keys]] = {
    "\t": {0: (Keys.ControlI,), _SHIFT: (Keys.BackTab,)},
    "\r": {
        0: (Keys.ControlM,),
        _CTRL: (CTRL_ENTER,),
        **dict.fromkeys((_SHIFT, _ALT, _SHIFT | _ALT, _SHIFT | _CTRL), (BREAK_LINE,)),
    },
    "\x1b": {0: (Keys.Escape,)},
    "\x7f": _BACKSPACE,
    "\b": _BACKSPACE,
}
"""Keys without a character of their own, by their modifiers."""
_KEYPAD = dict(zip(range(57399, 57417), "0123456789./*-+\r=,", strict=True))
_APPLICATION_KEYPAD = {
    "M": "\r",
    "X": "=",
    **{key: chr(ord(key) - 64) for key in "jklmnopqrstuvwxy"},
}
_KEYPAD_MOVES = dict(zip(range(57417, 57427), ("D", "C", "A", "B", "5~", "6~", "H", "F", "2~", "3~"), strict=True))
_PRIVATE_USE = range(0xE000, 0xF900)
_CONTROLS = {" ": "c-@", "/": "c-_", "?": "c-h", "[": "escape"}
"""What Ctrl makes of characters that are no letters, besides those of the same name."""


class Keyboard(Vt100Input):
    """What is typed at one terminal."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self.vt100_parser = KeyDecoder(self._add, self._report)
        self.take_report: Callable[[str], None] = lambda _: None
        """Gets what the terminal says of itself: whether it has the focus, its colours."""
        self._pasted_at = 0.0

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come; a paste that the terminal does not mark is one key all the same."""
        keys = super().read_keys()
        while more := super().read_keys():
            keys += more
        is_rest = time.monotonic() - self._pasted_at < _PIECES_S
        if sum(map(_is_text, keys)) >= _LONG_PASTE and any(press.key in _LINE_ENDS for press in keys[:-1]):
            self._pasted_at = time.monotonic()
        return _group_pastes(keys, is_rest=is_rest)

    def _report(self, report: str) -> None:
        self.take_report(report)

    def _add(self, press: KeyPress) -> None:
        self._buffer.append(press)

    def take_typed_lines(self) -> None:
        """Keep for the next prompt what was typed before raw mode began, where Enter is a line feed."""
        self.vt100_parser.feed(self.stdin_reader.read().replace("\n", "\r"))
        keys, self._buffer = self._buffer, []
        store_typeahead(self, [*get_typeahead(self), *keys])


class KeyDecoder(Vt100Parser):
    """Calls back with the keys that the characters stand for, and with the reports between them.

    What is incomplete is kept.
    """

    def __init__(
        self, take_key: Callable[[KeyPress], None], take_report: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(take_key)
        self._take_report = take_report

    def reset(self, request: bool = False) -> None:  # noqa: ARG002 - prompt_toolkit's
        """See prompt_toolkit."""
        self._kept = ""
        self._is_pasting = False

    def feed(self, data: str) -> None:
        """See prompt_toolkit."""
        self._kept += data
        while self._kept and self._take(is_last=False):
            pass

    def flush(self) -> None:
        """Nothing came for a moment: what was kept is complete. A paste is not, and is waited for."""
        while self._kept and self._take(is_last=True):
            pass

    def _take(self, *, is_last: bool) -> bool:
        """Decode the next piece; False where it is not complete."""
        if self._is_pasting:
            text, end, after = self._kept.partition(_PASTE_END)
            if end:
                self._is_pasting, self._kept = False, after
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, text))
            return bool(end)
        if not self._kept.startswith(_ESC):
            text, escape, after = self._kept.partition(_ESC)
            self._kept = escape + after
            for character in text:
                self._press(character)
        elif self._kept.startswith(_PASTE_BEGIN):
            self._is_pasting, self._kept = True, self._kept.removeprefix(_PASTE_BEGIN)
        elif found := _SEQUENCE.match(self._kept):
            self._kept = self._kept[found.end() :]
            keys = _keys_of(found)
            for key in keys:
                self.feed_key_callback(KeyPress(key, key if len(key) == 1 else ""))
            if not keys:
                self._take_report(found[0])
        else:
            return self._take_beginning(is_last=is_last)
        return True

    def _take_beginning(self, *, is_last: bool) -> bool:
        """An Escape that begins no sequence, or one that is not complete."""
        beginning = _BEGINNING.match(self._kept)
        length = beginning.end() if beginning else 1
        if length == len(self._kept) and not is_last:
            return False
        if length > _INTRODUCER_LENGTH:
            self._kept = self._kept[length:]  # A sequence without an end.
            return True
        alt = self._kept[:2]
        if (known := ANSI_SEQUENCES.get(alt)) is not None and isinstance(known, Keys):
            self.feed_key_callback(KeyPress(known, ""))
            self._kept = self._kept[2:]
            return True
        self.feed_key_callback(KeyPress(Keys.Escape, ""))
        self._kept = self._kept[1:]
        if length == _INTRODUCER_LENGTH:
            self._press(self._kept[0])
            self._kept = self._kept[1:]
        return True

    def _press(self, character: str) -> None:
        key = ANSI_SEQUENCES.get(character, character)
        self.feed_key_callback(KeyPress(key if isinstance(key, Keys) else character, character))


def _keys_of(found: re.Match[str]) -> _Keys:
    """The keys of a sequence: none for a report of the mouse, the focus or the terminal, and for a key let go."""
    if found["shifted"]:
        return _moved_key(found["shifted"], "~", _SHIFT)
    if found["key"]:
        keypad = _APPLICATION_KEYPAD.get(found["key"]) if not found["modifier"] else None
        if keypad:
            return _character_keys(ord(keypad), 0)
        return _known(found[0]) or _moved_key("", found["key"], int(found["modifier"] or 1) - 1)
    values = _VALUES.fullmatch(found["values"] or "")
    if found["final"] is None or values is None or values[4] == _RELEASED or found["final"] in "MR":
        return _known(found[0]) if found["final"] is None else ()
    return _control_sequence_keys(found[0], values, found["final"])


def _control_sequence_keys(sequence: str, values: re.Match[str], final: str) -> _Keys:
    modifiers = _modifiers(values[3])
    if final == "u":
        return _character_keys(int(values[1] or 0), modifiers, values[2], values[5])
    if final == "~" and values[1] == _OTHER_KEY and values[5]:
        return _character_keys(int(values[5].partition(":")[0] or 0), modifiers)
    if final in _RXVT_MODIFIERS and values[1]:
        return _moved_key(values[1], "~", _RXVT_MODIFIERS[final])
    return _known(sequence) or _moved_key(values[1], final, modifiers)


def _modifiers(stated: str | None) -> int:
    """The modifiers of a key, Meta as Alt, without Num Lock."""
    bits = max(int(stated or 1) - 1, 0)
    return bits & (_SHIFT | _ALT | _CTRL | _SUPER_HYPER | _CAPS_LOCK) | (_ALT if bits & _META else 0)


def _known(sequence: str) -> _Keys:
    keys = ANSI_SEQUENCES.get(sequence, ())
    return (keys,) if isinstance(keys, Keys) else keys


def _moved_key(number: str, final: str, modifiers: int) -> _Keys:
    """An arrow, a function key and the like, as xterm would send it."""
    modifiers &= ~_CAPS_LOCK
    if modifiers:
        return _known(f"\x1b[{number or 1};{modifiers + 1}{final}")
    if final == "~":
        return _known(f"\x1b[{number}~")
    return _known(f"\x1b[{final}") or _known(f"\x1bO{final}")


def _character_keys(code: int, modifiers: int, shifted: str | None = None, text: str | None = None) -> _Keys:
    """A key that is named by its character, as the kitty protocol and xterm's modifyOtherKeys do."""
    if modifiers & _SUPER_HYPER:
        return ()
    if code in _KEYPAD_MOVES:
        move = _KEYPAD_MOVES[code]
        return _moved_key(move[:-1], move[-1], modifiers)
    character = _KEYPAD.get(code) or _character(code)
    if character in _NAMED:
        return _NAMED[character].get(modifiers & ~_CAPS_LOCK, ())
    alt: _Keys = (Keys.Escape,) if modifiers & _ALT else ()
    if modifiers & _CTRL:
        made = _character(shifted) if shifted and modifiers & _SHIFT else character
        if (made.isalpha() and modifiers & _SHIFT) or (made == "[" and modifiers & ~_CAPS_LOCK != _CTRL):
            return ()
        name = _CONTROLS.get(made, f"c-{made}")
        return (*alt, Keys(name)) if name in _KEY_NAMES else ()
    if text:
        character = "".join(map(_character, text.split(":")))
    elif modifiers & _SHIFT:
        character = _character(shifted) if shifted else character.upper()
    elif modifiers & _CAPS_LOCK:
        character = character.upper()
    is_typed = character.isprintable() and (code not in _PRIVATE_USE or code in _KEYPAD)
    return (*alt, *character) if is_typed else ()


def _character(code: int | str) -> str:
    number = int(code or 0)
    return chr(number) if number <= sys.maxunicode else ""


def _group_pastes(keys: list[KeyPress], *, is_rest: bool) -> list[KeyPress]:
    """The same keys, with each text that was pasted as one: key by key it would be slow, or sent line by line.

    Lines that end with Enter are lines typed ahead, unless there is more of them than anybody types.
    """
    grouped: list[KeyPress] = []
    for is_text, run in groupby(keys, key=_is_text):
        together = list(run)
        if not is_text:
            grouped += together
            continue
        if grouped and grouped[-1].key is Keys.Escape:
            grouped.append(together.pop(0))  # A key with Alt.
        breaks = any(one.key in _LINE_ENDS and after.key not in _LINE_ENDS for one, after in pairwise(together))
        ends_open = bool(together) and together[-1].key is not Keys.ControlM
        if is_rest or (breaks and (ends_open or len(together) >= _LONG_PASTE)):
            grouped += _as_paste(together)
            continue
        for is_character, part in groupby(together, key=_is_character):
            line = list(part)
            if is_character and len(line) >= _PASTE_LENGTH:
                # The last one may belong to the key behind it: a backslash before Enter.
                grouped += [*_as_paste(line[:-1]), line[-1]]
            else:
                grouped += line
    return grouped


def _as_paste(keys: list[KeyPress]) -> list[KeyPress]:
    return [KeyPress(Keys.BracketedPaste, "".join(press.data for press in keys))] if keys else []


def _is_text(press: KeyPress) -> bool:
    return _is_character(press) or press.key in (*_LINE_ENDS, Keys.ControlI)


def _is_character(press: KeyPress) -> bool:
    return not isinstance(press.key, Keys) and press.key.isprintable()


def typed_text(keys: Iterable[KeyPress]) -> str:
    """What the keys would have written into an empty line; Enter breaks the line."""
    text = ""
    for press in keys:
        if press.key is Keys.Backspace:
            text = text[:-1]
        elif press.key is Keys.BracketedPaste:
            text += press.data.replace("\r\n", "\n").replace("\r", "\n")
        elif press.key in (*_LINE_ENDS, BREAK_LINE):
            text += "\n"
        elif len(press.key) == 1:
            text += press.key
    return text


ESCAPE_S = 0.1
"""A lone ESC byte this long is the key Esc and not the beginning of a sequence."""
ALT_S = 0.05
"""How long the key Esc waits for another one that makes it Alt."""

_PASTE_LINES = 20
"""A longer paste is shown as one word."""
_ENDS_AS_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|webp)['\"]?\s*\Z", re.IGNORECASE)
_MAX_PATHS_CHARS = 10_000
is_empty = Condition(lambda: not get_app().current_buffer.text)


@Condition
def ends_with_backslash() -> bool:
    document = get_app().current_buffer.document
    return document.text_before_cursor.endswith("\\") and not document.text_after_cursor


class InputClosed(Exception):
    """Ctrl-D at a prompt, or the end of the input."""


class InputCancelled(Exception):
    """Esc at a question: it is left without an answer."""


class InputInterrupted(InputCancelled):
    """Ctrl-C at a prompt: the same at a question, and once more at the next message it leaves the chat."""


def bind_leaving(keys: KeyBindings, leave: Callable[[KeyPressEvent], None]) -> None:
    """Bind Esc and Ctrl-C; an Alt key without a function is the key alone, as at the prompt."""
    keys.add("escape", filter=~is_searching & ~vi_insert_mode)(leave)
    keys.add("escape", "escape", filter=~is_searching & emacs_mode)(leave)
    keys.add("c-c", filter=~is_searching)(leave)
    alt = keys.add("escape", Keys.Any, filter=~is_searching & emacs_mode)
    alt(lambda event: event.key_processor.feed(event.key_sequence[-1], first=True))


TakeBack = Callable[[], Awaitable[str | None]]
"""Removes the newest queued message, to edit it; None when none is queued."""


class EarlyLines(Protocol):
    """What is entered while the chat loads."""

    @property
    def has_lines(self) -> bool:
        """Whether anything was entered."""
        ...

    def enter_early(self, line: str) -> None:
        """Take in a line."""

    async def take_back_early(self) -> str | None:
        """Return the newest line, to edit it; None if there is none, or if its request was sent already."""


def bind_loading(keys: KeyBindings, early: Callable[[], EarlyLines | None], say: Callable[[str], None]) -> None:
    """Bind the keys while the chat loads: Ctrl-D leaves once what was entered is done, Esc says which keys work.

    Args:
        early: what takes the lines; None once the chat has loaded.
    """

    @keys.add("c-d", filter=is_empty & Condition(lambda: (lines := early()) is not None and lines.has_lines))
    def _leave_afterwards(_: KeyPressEvent) -> None:
        if (lines := early()) is not None:
            lines.enter_early("/quit")

    @keys.add("escape", filter=emacs_mode & ~is_searching & Condition(lambda: early() is not None))
    def _explain(_: KeyPressEvent) -> None:
        say("Still loading, nothing runs yet. Up edits the last line entered, Ctrl-C twice leaves.")


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """What the keys do while a turn runs that do not edit the line."""

    stop: Callable[[], None]
    """Esc and Ctrl-C."""
    enter: Callable[[str, bool], bool] = lambda *_: False
    """A line was entered, with Ctrl-Enter as an urgent one; whether it is taken. What is not taken is entered again
    at the next prompt."""
    changed: Callable[[str, int], None] = lambda *_: None
    """The line that is typed, and where the cursor is."""
    suspend: Callable[[], None] = lambda: None
    """Ctrl-Z, before the job stops."""
    pause: Callable[[bool], None] = lambda _: None
    """Something else is drawn for a while, or no longer."""
    take_back: TakeBack | None = None


class Pastes:
    """The placeholders on the line of one terminal; deleting one removes what it stands for."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        """Shows why an image is not attached."""
        self._attaching: set[asyncio.Task[None]] = set()
        self._texts: dict[str, str] = {}
        self._images: dict[str, str] = {}
        """Paths of the copies, by mark."""

    def shorten(self, text: str) -> str:
        """The text, or what stands for it on the line until it is entered."""
        lines = text.removesuffix("\n").count("\n") + 1
        if lines <= _PASTE_LINES:
            return text
        name = f"[pasted {lines} lines]"
        number = 2
        while self._texts.get(name, text) != text:
            name = f"[pasted {lines} lines, {number}]"
            number += 1
        self._texts[name] = text
        return name

    def expand(self, line: str) -> str:
        """The line with its pasted texts."""
        for name, text in self._texts.items():
            line = line.replace(name, text)
        return line

    def complete(self, line: str) -> str:
        """The message that the line stands for: images are mentioned at its end."""
        mentions = (f'@"{path}"' for mark, path in self._images.items() if mark in line)
        return "\n\n".join([self.expand(line), *mentions])

    def are_on_line(self) -> bool:
        """Whether something on the line stands for more than it shows."""
        line = get_app().current_buffer.text
        return any(mark in line for mark in (*self._texts, *self._images))

    def _mark_before_cursor(self) -> str:
        """The image mark that ends at the cursor; empty if none does."""
        text = get_app().current_buffer.document.text_before_cursor
        return next((mark for mark in self._images if text.endswith(mark)), "")

    def bind(self, keys: KeyBindings) -> None:
        """Ctrl-V attaches the image of the clipboard at the cursor; Backspace deletes a mark as a whole."""

        @keys.add("c-v", filter=emacs_mode | vi_insert_mode)
        def _paste_image(event: KeyPressEvent) -> None:
            self._attach_from_clipboard(event.current_buffer)

        @keys.add("backspace", filter=~is_searching & Condition(lambda: bool(self._mark_before_cursor())))
        def _delete_mark(event: KeyPressEvent) -> None:
            event.current_buffer.delete_before_cursor(len(self._mark_before_cursor()))

    def _attach_from_clipboard(self, buffer: Buffer) -> None:

        async def attach() -> None:
            chat_input: Any = await _chat_input()
            image = await asyncio.to_thread(chat_input.clipboard_image)
            buffer.insert_text(self._mark(image))

        self._start(attach())

    def attach_dropped(self, buffer: Buffer, text: str) -> None:
        """Replace a pasted text of image paths, which is how terminals report dropped files."""
        if len(text) > _MAX_PATHS_CHARS or _ENDS_AS_IMAGE.search(text) is None:
            return

        async def attach() -> None:
            chat_input: Any = await _chat_input()
            images = await asyncio.to_thread(chat_input.dropped_images, text)
            before, found, after = buffer.text.partition(text)
            if images and found:
                marks = " ".join(map(self._mark, images))
                behind = max(buffer.cursor_position - len(before) - len(text), 0)
                buffer.document = Document(f"{before}{marks}{after}", len(before) + len(marks) + behind)

        self._start(attach())

    def _start(self, attaching: Coroutine[Any, Any, None]) -> None:
        async def attach() -> None:
            try:
                await attaching
            except AgentError as refusal:
                self._say(str(refusal))

        # Not a task of the line's: that may end meanwhile.
        self._attaching.add(task := asyncio.ensure_future(attach()))
        task.add_done_callback(self._attaching.discard)

    def _mark(self, image: Any) -> str:
        mark = f"[image {len(self._images) + 1}: {image.label}]"
        self._images[mark] = str(image.path)
        return mark


async def _chat_input() -> Any:
    """Loads what the prompt must not wait for."""
    return await asyncio.to_thread(importlib.import_module, "graph_agent.app.chat_input")


def vi_mark(app: Application[Any]) -> str:
    """How vi shows its mode; empty where its keys are not used."""
    if app.editing_mode is not EditingMode.VI:
        return ""
    return "-- NORMAL --" if app.vi_state.input_mode is InputMode.NAVIGATION else "-- INSERT --"


def clear(buffer: Buffer) -> None:
    buffer.reset()
    buffer.on_text_changed.fire()


def end_of(text: str) -> Document:
    return Document(text, len(text))
