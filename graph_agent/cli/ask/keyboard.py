"""The keyboard of a terminal, which hands on as one paste what came faster than anybody types.

A terminal, or a program that types, may send a long text without the marks of a paste. Key by key it would take
prompt_toolkit a minute to insert. Knows no prompt and what no key means.
"""

from itertools import groupby

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

__all__ = ["Keyboard", "pasted"]

_FASTER_THAN_TYPED = 32
"""So many characters at once come from no fingers."""


class Keyboard(Vt100Input):
    """What is typed at one terminal."""

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come."""
        return pasted(super().read_keys())


def pasted(keys: list[KeyPress]) -> list[KeyPress]:
    """The same keys, with each long run of characters as one paste.

    Its first and last stay keys: they may belong to the key before, after Escape, or to that behind, a backslash.
    """
    if len(keys) < _FASTER_THAN_TYPED:
        return keys
    handed: list[KeyPress] = []
    for is_text, run in groupby(keys, key=_is_character):
        together = list(run)
        if is_text and len(together) >= _FASTER_THAN_TYPED:
            first, *middle, last = together
            text = "".join(press.key for press in middle)
            together = [first, KeyPress(Keys.BracketedPaste, text), last]
        handed += together
    return handed


def _is_character(press: KeyPress) -> bool:
    return not isinstance(press.key, Keys) and press.key.isprintable()
