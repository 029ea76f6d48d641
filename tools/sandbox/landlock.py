"""Landlock: the launcher that confines itself, also with a system call filter, and then becomes the program.

A process with threads cannot be confined as a whole, so this file is run by an interpreter of its own. It uses the
standard library only, because nothing else is on its path. It prints nothing unless it fails, and then it starts
nothing.
"""

import contextlib
import ctypes
import json
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["FAILED", "become", "landlock_abi", "readable_around", "restrict"]

FAILED = 126
"""Exit code of the launcher when nothing was started."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_SECCOMP, _FILTER = 22, 2
_DROP_CAPABILITY, _SET_SECURE_BITS, _AMBIENT_CAPABILITIES, _CLEAR_ALL = 24, 28, 47, 4
_ROOT_IS_NOBODY_SPECIAL = 0xEF
"""The user id 0 brings no capabilities, nor does changing to it, and all that cannot be changed again."""
_CAPABILITY_VERSION = 0x20080522
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_DEVICE_FOLDER = "/dev"
"""Nothing else of it can be read: a disk holds every file, and a terminal takes what is written for the agent's."""

_WRITE_FILE, _READ_FILE = 1 << 1, 1 << 2
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_CHANGES = sum(1 << bit for bit in (1, *range(4, 13)))
"""Write, remove and make: all rights of the first version."""
_FILE_CHANGES = _WRITE_FILE | _TRUNCATE
_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def landlock_abi() -> int:
    """The version of the kernel's interface; 0 where there is none."""
    return max(0, int(_syscall(_CREATE, None, 0, _ASK_VERSION)))


def become(rules: dict[str, Any], program: list[str]) -> None:
    """Confine this process and become the program; returns only by an exception.

    The rules: `writable` and `hidden` paths, those that are `closed` in writable folders, `network`, and `filter`,
    the seccomp instructions in hex.
    """
    restrict(
        writable=_open_around(rules["writable"], rules["closed"]),
        readable=readable_around([*rules["hidden"], _DEVICE_FOLDER]),
        files=_DEVICES,
        network=rules["network"],
    )
    _drop_capabilities()
    _filter(bytes.fromhex(rules["filter"]))
    os.execv(program[0], program)  # noqa: S606 - the one purpose


def restrict(*, writable: Iterable[str], readable: Iterable[str], files: Iterable[str], network: bool) -> None:
    """Confine this thread, and all that it starts, permanently; it must be the only thread.

    Args:
        writable: folders in which anything may be changed.
        readable: folders and files whose content may be read.
        files: files, devices for instance, that may be written but not replaced.
        network: whether TCP stays open; only newer kernels can close it.

    Raises:
        OSError: the kernel refuses; nothing may be started then.
    """
    abi = landlock_abi()
    changes = _CHANGES | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    tcp = _TCP if abi >= 4 and not network else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    attributes = struct.pack("=QQQ", changes | _READ_FILE, tcp, scoped)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    rules = _checked(_CREATE, attributes, len(attributes), 0)
    for path in readable:
        _allow(rules, path, _READ_FILE)
    for path in writable:
        _allow(rules, path, changes | _READ_FILE)
    for path in files:
        _allow(rules, path, (_FILE_CHANGES if abi >= 3 else _WRITE_FILE) | _READ_FILE)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _checked(_RESTRICT, rules, 0)
    os.close(rules)


def readable_around(hidden: Iterable[str]) -> list[str]:
    """Folders and files that together hold everything except what is hidden, as rules can only add access."""
    return sorted(_around("/", {path for path in hidden if path != "/"}))


def _open_around(folders: Iterable[str], closed: Iterable[str]) -> Iterator[str]:
    """The folders without what is closed in them; nothing can be created in a folder above that."""
    places = set(closed)
    for folder in folders:
        if not any(folder == place or folder.startswith(f"{place.rstrip('/')}/") for place in places):
            yield from _around(folder, {place for place in places if place.startswith(f"{folder.rstrip('/')}/")})


def _around(folder: str, hidden: set[str]) -> Iterator[str]:
    if not hidden:
        yield folder
        return
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names alone are cheaper
    except OSError:
        return
    for name in names:
        path = f"{folder.rstrip('/')}/{name}"
        if path not in hidden and not os.path.islink(path):  # noqa: PTH114 - as above
            yield from _around(path, {inner for inner in hidden if inner.startswith(f"{path}/")})


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What does not exist needs no rule.
    try:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - as above
            rights &= _FILE_CHANGES | _READ_FILE
        _checked(_ADD, rules, _BENEATH, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _filter(steps: bytes) -> None:
    _prctl(_SECCOMP, _FILTER, ctypes.byref(_Program(len(steps) // 8, steps)))


def _drop_capabilities() -> None:
    """Drop all of them for good; only root, or who was given some, has any."""
    for number in range(64):
        try:
            _prctl(_DROP_CAPABILITY, number)
        except OSError:
            break  # This is beyond the last capability, or the user has none to drop.
    _prctl(_AMBIENT_CAPABILITIES, _CLEAR_ALL)
    with contextlib.suppress(OSError):  # This takes a capability.
        _prctl(_SET_SECURE_BITS, _ROOT_IS_NOBODY_SPECIAL)
    header, none = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _prctl(option: int, first: int, second: Any = 0) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, first, second, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _syscall(number: int, *arguments: "int | bytes | None") -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    words = [
        ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in (number, *arguments)
    ]
    return int(call(*words))


def _checked(number: int, *arguments: "int | bytes | None") -> int:
    answer = _syscall(number, *arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


if __name__ == "__main__":
    try:
        become(json.loads(sys.argv[1]), sys.argv[2:])
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"sandbox: could not be set up, and nothing was started: {error}\n")
        sys.exit(FAILED)
