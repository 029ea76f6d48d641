"""What terminals send for keys: readline's, xterm's, rxvt's, the Linux console's and the kitty protocol's."""

from collections.abc import Mapping
from itertools import product

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES

__all__ = ["ENDING", "KEYS", "LINE_BREAKS"]

_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789`-=[]\\;',./ "
_MODIFIERS = {
    "Shift": 2,
    "Alt": 3,
    "Alt-Shift": 4,
    "Ctrl": 5,
    "Ctrl-Shift": 6,
    "Ctrl-Alt": 7,
    "Ctrl-Alt-Shift": 8,
    "Super": 9,
    "Hyper": 17,
    "Meta": 33,
    "Caps Lock": 65,
    "Num Lock": 129,
}
_PRIVATE_USE = 0xE000
_ENDING_CHARACTERS = {"c", "d", "z", "m"}
"""With Ctrl they leave, suspend or enter."""


def _kitty() -> dict[str, str]:
    """The keys of the protocol, each with every modifier, pressed, repeated and let go."""
    codes = {**{character: ord(character) for character in _CHARACTERS}, "Tab": 9, "Backspace": 127}
    codes |= {f"private key {code}": code for code in range(57344, 57455)}
    keys = {f"kitty {name}": f"\x1b[{code}u" for name, code in codes.items()}
    for (name, code), (modifier, number) in product(codes.items(), _MODIFIERS.items()):
        if code < _PRIVATE_USE or modifier in ("Shift", "Ctrl", "Super"):
            keys[f"kitty {modifier}-{name}"] = f"\x1b[{code};{number}u"
    for name, code in codes.items():
        keys[f"kitty {name} repeated"] = f"\x1b[{code};1:2u"
        keys[f"kitty {name} let go"] = f"\x1b[{code};1:3u"
        if 32 <= code < 127:
            keys[f"kitty Shift-{name} with text"] = f"\x1b[{code}:{ord(name.upper())};2;{ord(name.upper())}u"
    for final, (modifier, number), event in product("ABCDEFHPQS", _MODIFIERS.items(), ("", ":2", ":3")):
        keys[f"kitty {modifier} {final}{event}"] = f"\x1b[1;{number}{event}{final}"
    for first, (modifier, number), event in product(
        (2, 3, 5, 6, 7, 8, 13, 15, 24), _MODIFIERS.items(), ("", ":2", ":3")
    ):
        keys[f"kitty {modifier} {first}~{event}"] = f"\x1b[{first};{number}{event}~"
    for code, number in product((13, 27), (1, 2, 3, 5)):
        keys[f"kitty {code} with {number} let go"] = f"\x1b[{code};{number}:3u"
    return keys


def _other_keys() -> dict[str, str]:
    """xterm's modifyOtherKeys."""
    codes = {**{character: ord(character) for character in _CHARACTERS}, "Tab": 9, "Backspace": 127, "BS": 8}
    return {
        f"xterm {modifier}-{name}": f"\x1b[27;{number};{code}~"
        for (name, code), (modifier, number) in product(codes.items(), _MODIFIERS.items())
    }


def _is_ending(key: str) -> bool:
    """Whether the key ends a line, leaves, suspends, or begins what ends with the next key."""
    return key in ENDING or any(
        key in (f"\x1b[{ord(one)};{number}u", f"\x1b[27;{number};{ord(one)}~")
        for one, number in product((*_ENDING_CHARACTERS, "[", "x", "q", "v", "r", "s"), (5, 7))
    )


ENDING = {
    *(f"\x1b[57414{modifier}u" for modifier in ("", ";1:2", ";5", ";65", ";129")),  # Enter of the keypad
    *("\r", "\x03", "\x04", "\x1a", "\x1b", "\x1bOM", "\x1b[27;5;13~"),
    *("\x18", "\x11", "\x16", "\x12", "\x13", "\x1b[200~", "\x9b"),
}
"""Keys that enter, leave, suspend, stop or search, or that wait for another one. Those are tested by name."""
LINE_BREAKS = {
    "Ctrl-J": "\n",
    "Alt-Enter": "\x1b\r",
    "kitty Shift-Enter": "\x1b[13;2u",
    "kitty Alt-Enter": "\x1b[13;3u",
    "xterm Shift-Enter": "\x1b[27;2;13~",
    "xterm Alt-Enter": "\x1b[27;3;13~",
    "kitty Ctrl-J": "\x1b[106;5u",
}
_REPORTS = {
    "focus in": "\x1b[I",
    "focus out": "\x1b[O",
    "mouse": "\x1b[<0;12;3M",
    "mouse let go": "\x1b[<0;12;3m",
    "mouse wheel": "\x1b[<64;12;3M",
    "urxvt mouse": "\x1b[32;12;3M",
    "X10 mouse": "\x1b[M !!",
    "cursor position": "\x1b[12;40R",
    "device attributes": "\x1b[?62;1;2c",
    "mode report": "\x1b[?2026;2$y",
    "kitty flags": "\x1b[?1u",
    "colour": "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
    "colour, other end": "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    "terminal name": "\x1bP>|XTerm(388)\x1b\\",
    "kitty graphics": "\x1b_Gi=31;OK\x1b\\",
    "rxvt Shift-Home": "\x1b[7$",
    "rxvt Ctrl-Home": "\x1b[7^",
    "rxvt Shift-Up": "\x1b[a",
    "a key that does not exist": "\x1b[99999999u",
    "a number without an end": f"\x1b[{'9' * 5000}u",
    "konsole Shift-F1": "\x1bO2P",
}
KEYS: Mapping[str, str] = {
    name: key
    for name, key in {
        **{f"Ctrl {number:#x}": chr(number) for number in range(32)},
        **{f"Alt-{chr(number)}": f"\x1b{chr(number)}" for number in range(33, 127) if chr(number) not in "[O]P^_X"},
        "Alt-Backspace": "\x1b\x7f",
        "Alt-Up": "\x1b\x1b[A",
        "Alt-Ctrl-a": "\x1b\x01",
        "a paste": "\x1b[200~x\r\ny\x1b[201~",
        "a paste of keys": "\x1b[200~\x1b[A\x03\x1b\x1b[201~",
        **{f"known {sequence[1:]}": sequence for sequence in ANSI_SEQUENCES if len(sequence) > 1},
        **{f"keypad {key}": f"\x1bO{key}" for key in "Xjklmnopqrstuvwxy"},
        **_kitty(),
        **_other_keys(),
        **_REPORTS,
        **LINE_BREAKS,
    }.items()
    if not _is_ending(key)
}
"""By name; the bytes are sent at once."""
