"""Landlock and seccomp: the launcher that confines itself with them and then becomes the program.

A process with threads cannot be confined as a whole, so this file is run by an interpreter of its own. It uses the
standard library only, because nothing else is on its path. It prints nothing unless it fails, and then it starts
nothing.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import sys
from collections.abc import Iterable
from typing import Any

__all__ = ["FAILED", "become", "is_known_machine", "landlock_abi", "readable_around", "restrict", "seccomp_filter"]

FAILED = 126
"""Exit code of the launcher when nothing was started."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_SECCOMP, _FILTER = 22, 2
_DROP_CAPABILITY = 24
_KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7))
"""Of root's capabilities those about the owners of files, signals and becoming another user."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_OPEN_FOLDERS = ("/dev/shm", "/dev/pts")  # noqa: S108 - shared memory, which holds semaphores

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

    The rules: `writable` and `hidden` paths, `network`, and `filter`, the seccomp instructions in hex.
    """
    _drop_capabilities()
    restrict(
        writable=(*rules["writable"], *_OPEN_FOLDERS),
        readable=readable_around(rules["hidden"]),
        files=_DEVICES,
        network=rules["network"],
    )
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


def _around(folder: str, hidden: set[str]) -> Iterable[str]:
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
    for number in range(64):
        if number not in _KEPT_CAPABILITIES:
            try:
                _prctl(_DROP_CAPABILITY, number)
            except OSError:
                return  # This is beyond the last capability, or the user is not root and has none to drop.


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


_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in the kernel's description of a system call."""
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NAMESPACES = 0x7E020080
"""The flags of clone that make namespaces."""

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "arm64": (0xC00000B7, 1)}
"""The kernel's number for a machine, and the column of its system call numbers in the tables below."""
_SOCKET = (41, 198)
_CLONE = (56, 220)
_UNSHARE = (272, 97)
_CLONE3 = (435, 435)
_FORBIDDEN = (
    (165, 40),  # mount
    (166, 39),  # umount2
    (155, 41),  # pivot_root
    (161, 51),  # chroot
    (308, 268),  # setns
    (428, 428),  # open_tree
    (429, 429),  # move_mount
    (430, 430),  # fsopen
    (442, 442),  # mount_setattr
    (304, 265),  # open_by_handle_at
    (175, 105),  # init_module
    (313, 273),  # finit_module
    (246, 104),  # kexec_load
    (320, 294),  # kexec_file_load
    (321, 280),  # bpf
    (298, 241),  # perf_event_open
    (323, 282),  # userfaultfd
    (248, 217),  # add_key
    (249, 218),  # request_key
    (250, 219),  # keyctl
    (425, 425),  # io_uring_setup: its rings create sockets and open files past this filter
)


def is_known_machine(machine: str = "") -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return (machine or platform.machine()) in _MACHINES


def seccomp_filter(*, network: bool, machine: str = "") -> bytes:
    """The filter as an array of kernel instructions; without network only local sockets can be created."""
    name, column = _MACHINES[machine or platform.machine()]
    families = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK) if network else (_AF_UNIX,)
    program = [
        _op(_LOAD, _MACHINE),
        _op(_JUMP_EQUAL, name, skip_if_true=1),
        _fail(errno.ENOSYS),
        _op(_LOAD, _NUMBER),
        _op(_JUMP_AT_LEAST, _X32, skip_if_false=1),
        _fail(errno.ENOSYS),
        *_when(_CLONE3[column], [_fail(errno.ENOSYS)]),
        *(step for numbers in _FORBIDDEN for step in _when(numbers[column], [_fail(errno.EPERM)])),
        *_when(_SOCKET[column], _only(families)),
        *_when(_CLONE[column], _without(_NAMESPACES)),
        *_when(_UNSHARE[column], _without(_NAMESPACES)),
        _op(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _op(code: int, value: int, *, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if_true, skip_if_false, value)


def _fail(number: int) -> bytes:
    return _op(_RETURN, _ERRNO | number)


def _when(number: int, steps: list[bytes]) -> list[bytes]:
    """Steps for one system call, whose number has been loaded; the last of them returns."""
    return [_op(_JUMP_EQUAL, number, skip_if_false=len(steps)), *steps]


def _only(families: tuple[int, ...]) -> list[bytes]:
    """Return: allowed where the first argument is one of these."""
    tests = [_op(_JUMP_EQUAL, family, skip_if_true=len(families) - at) for at, family in enumerate(families)]
    return [_op(_LOAD, _FIRST_ARGUMENT), *tests, _fail(errno.EACCES), _op(_RETURN, _ALLOW)]


def _without(flags: int) -> list[bytes]:
    """Return: allowed where the first argument has none of these."""
    test = _op(_JUMP_ANY_BIT, flags, skip_if_false=1)
    return [_op(_LOAD, _FIRST_ARGUMENT), test, _fail(errno.EPERM), _op(_RETURN, _ALLOW)]


if __name__ == "__main__":
    try:
        become(json.loads(sys.argv[1]), sys.argv[2:])
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"sandbox: could not be set up, and nothing was started: {error}\n")
        sys.exit(FAILED)
