"""What a wrapper runs, exactly: an allow rule must cover the inner command too, so nothing here is guessed."""

from collections.abc import Mapping
from posixpath import basename
from typing import NamedTuple

__all__ = ["inner_commands"]


class _Wrapper(NamedTuple):
    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with one."""
    operands: int = 0
    """Words before the command."""


_WRAPPERS: Mapping[str, _Wrapper | None] = {
    "builtin": _Wrapper(),
    "busybox": None,
    "chroot": None,
    "chrt": None,
    "command": _Wrapper("p"),
    "doas": _Wrapper("n", "u"),
    "env": _Wrapper("i0v", "uC"),
    "exec": _Wrapper("cl", "a"),
    "firejail": None,
    "flock": None,
    "gtime": None,
    "ionice": _Wrapper("t", "cn"),
    "nice": _Wrapper("", "n"),
    "nohup": _Wrapper(),
    "parallel": None,
    "runuser": None,
    "script": None,
    "setsid": _Wrapper("cfw"),
    "ssh": None,
    "stdbuf": _Wrapper("", "ioe"),
    "strace": None,
    "sudo": _Wrapper("nEHk", "ugp"),
    "taskset": None,
    "time": _Wrapper("p"),
    "timeout": _Wrapper("vfp", "ks", operands=1),
    "unshare": None,
    "watch": None,
    "xargs": _Wrapper("0rtx", "nPILsdEa"),
}
"""None: how it takes its command is not known here."""
_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")


def inner_commands(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """The commands a wrapper, or `find`, would run; empty for other programs, None where that is not certain."""
    program = basename(words[0])
    if program == "find":
        return _executed(words)
    if program not in _WRAPPERS:
        return ()
    wrapper = _WRAPPERS[program]
    rest = None if wrapper is None else _rest(wrapper, words[1:])
    if rest is None:
        return None
    return (rest,) if rest else ()


def _rest(wrapper: _Wrapper, words: tuple[str, ...]) -> tuple[str, ...] | None:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        step = _values_of(wrapper, word)
        if step is None:
            return None
        at += step
    return words[at + wrapper.operands :]


def _values_of(wrapper: _Wrapper, word: str) -> int | None:
    """How many words the option takes besides its own; None for an unknown one."""
    if word.startswith("--"):
        return None
    for index, letter in enumerate(word[1:], start=1):
        if letter in wrapper.valued:
            return 0 if index < len(word) - 1 else 1
        if letter not in wrapper.flags:
            return None
    return 0


def _executed(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    for index, word in enumerate(words):
        if word not in _EXECUTES:
            continue
        rest = words[index + 1 :]
        end = next((at for at, each in enumerate(rest) if each in (";", "+")), len(rest))
        found.append(rest[:end])
    return tuple(found)
