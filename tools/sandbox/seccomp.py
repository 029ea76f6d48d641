"""The seccomp filters of the sandbox: system calls that a program in it cannot make, for both forms.

A filter sees the numbers of a call and not the memory they point to. So it can refuse a mode or a kind of socket,
but not a path.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["bubblewrap_filter", "is_known_machine", "landlock_filter"]

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
"""Offsets in the kernel's description of a system call; of the eight bytes of an argument the first four count."""
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NAMESPACES = 0x7E020080
"""The flags of clone that make namespaces."""
_SET_ID = 0o6000
_CREATES = 0o100 | 0o20000000
"""The flags of open with which it reads a mode."""
_UNCHANGED = 0xFFFFFFFF
_CHANGE_ATTRIBUTES = (0x40086602, 0x40046602, 0x401C5820)
"""The requests of ioctl that change a file's attributes, such as append-only."""


class _Machine(NamedTuple):
    """A processor, and the one of 32 bits whose programs it runs: names in the kernel, columns in the tables."""

    name: int
    column: int
    name_32: int
    column_32: int


_X86 = _Machine(0xC000003E, 0, 0x40000003, 2)
_ARM = _Machine(0xC00000B7, 1, 0x40000028, 3)
_MACHINES = {"x86_64": _X86, "aarch64": _ARM, "arm64": _ARM}

# System call numbers on x86-64, 64-bit ARM, 32-bit x86 and 32-bit ARM; -1 where there is no such call.
_FORBIDDEN = (
    (248, 217, 286, 309),  # add_key
    (249, 218, 287, 310),  # request_key
    (250, 219, 288, 311),  # keyctl: the session keyring is that of the agent
    (425, 425, 425, 425),  # io_uring_setup: its rings open files and create sockets past this filter
)
_UNKNOWN = ((437, 437, 437, 437),)
"""openat2, whose mode cannot be seen; without it programs take the older call."""
_MODES = (
    ((90, -1, 15, 15), 1),  # chmod
    ((91, 52, 94, 94), 1),  # fchmod
    ((268, 53, 306, 333), 2),  # fchmodat
    ((452, 452, 452, 452), 2),  # fchmodat2
    ((85, -1, 8, 8), 1),  # creat
    ((133, -1, 14, 14), 1),  # mknod
    ((259, 33, 297, 324), 2),  # mknodat
)
"""Calls with the position of the mode that they give a file."""
_OPENS = (
    ((2, -1, 5, 5), 1),  # open
    ((257, 56, 295, 322), 2),  # openat
)
"""Calls with the position of their flags, which the mode follows."""

# The rest is for Landlock alone, which has no namespaces; there, programs of 32 bits cannot run.
_FORBIDDEN_OUTSIDE = (
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
    (469, 469),  # file_setattr
)
_ATTRIBUTES = ((188, 5), (189, 6), (190, 7), (463, 463), (197, 14), (198, 15), (199, 16), (466, 466))
"""setxattr, lsetxattr, fsetxattr, setxattrat, removexattr, lremovexattr, fremovexattr, removexattrat."""
_OWNERS = (
    ((92, -1), 1),  # chown
    ((93, 55), 1),  # fchown
    ((94, -1), 1),  # lchown
    ((260, 54), 2),  # fchownat
)
"""Calls with the position of the user, which the group follows."""
_CLONE3, _CLONE, _UNSHARE, _SOCKET, _IOCTL, _PRLIMIT = (
    (435, 435),
    (56, 220),
    (272, 97),
    (41, 198),
    (16, 29),
    (302, 261),
)


def is_known_machine(machine: str = "") -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return (machine or platform.machine()) in _MACHINES


def bubblewrap_filter(machine: str = "") -> bytes:
    """The filter for a sandbox of namespaces, as an array of kernel instructions."""
    known = _MACHINES[machine or platform.machine()]
    return b"".join(
        [
            _op(_LOAD, _MACHINE),
            *_block(known.name, [*_without_x32(), *_in_every_form(known.column), _op(_RETURN, _ALLOW)]),
            *_block(known.name_32, [_op(_LOAD, _NUMBER), *_in_every_form(known.column_32), _op(_RETURN, _ALLOW)]),
            _fail(errno.ENOSYS),
        ]
    )


def landlock_filter(
    *, network: bool, machine: str = "", user: int | None = None, group: int | None = None
) -> bytes:
    """The filter that Landlock needs beside it; without network only local sockets can be created.

    Files outside cannot be given away: owner and group can only be set to `user` and `group`, by default this
    process's own.
    """
    known = _MACHINES[machine or platform.machine()]
    at = known.column
    families = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK) if network else (_AF_UNIX,)
    owner = (_UNCHANGED, os.geteuid() if user is None else user)
    owning_group = (_UNCHANGED, os.getegid() if group is None else group)
    steps = [
        *_without_x32(),
        *_when(_CLONE3[at], [_fail(errno.ENOSYS)]),
        *_in_every_form(at),
        *(step for numbers in _FORBIDDEN_OUTSIDE for step in _when(numbers[at], [_fail(errno.EPERM)])),
        # As if the file system had none, which programs that copy files expect.
        *(step for numbers in _ATTRIBUTES for step in _when(numbers[at], [_fail(errno.EOPNOTSUPP)])),
        *(
            step
            for numbers, position in _OWNERS
            for step in _when(
                numbers[at],
                [
                    *_only(owner, position, errno.EPERM),
                    *_only(owning_group, position + 1, errno.EPERM),
                    _op(_RETURN, _ALLOW),
                ],
            )
        ),
        *_when(_IOCTL[at], _none_of(_CHANGE_ATTRIBUTES, 1)),
        # Limits of this process alone, and not of others.
        *_when(_PRLIMIT[at], [*_only((0,), 0, errno.EPERM), _op(_RETURN, _ALLOW)]),
        *_when(_SOCKET[at], [*_only(families, 0, errno.EACCES), _op(_RETURN, _ALLOW)]),
        *_when(_CLONE[at], _without_bits(_NAMESPACES, 0)),
        *_when(_UNSHARE[at], _without_bits(_NAMESPACES, 0)),
        _op(_RETURN, _ALLOW),
    ]
    return b"".join(
        [_op(_LOAD, _MACHINE), _op(_JUMP_EQUAL, known.name, skip_if_true=1), _fail(errno.ENOSYS), *steps]
    )


def _in_every_form(column: int) -> Iterator[bytes]:
    """Keyrings, and files that run with another user's rights: nothing that is promised depends on the form."""
    for numbers in _FORBIDDEN:
        yield from _when(numbers[column], [_fail(errno.EPERM)])
    for numbers in _UNKNOWN:
        yield from _when(numbers[column], [_fail(errno.ENOSYS)])
    for numbers, position in _MODES:
        yield from _when(numbers[column], _without_bits(_SET_ID, position))
    for numbers, position in _OPENS:
        mode = _without_bits(_SET_ID, position + 1)
        flags = [_op(_LOAD, _ARGUMENTS + 8 * position), _op(_JUMP_ANY_BIT, _CREATES, skip_if_true=1)]
        yield from _when(numbers[column], [*flags, _op(_RETURN, _ALLOW), *mode])


def _op(code: int, value: int, *, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if_true, skip_if_false, value)


def _fail(number: int) -> bytes:
    return _op(_RETURN, _ERRNO | number)


def _block(machine: int, steps: list[bytes]) -> list[bytes]:
    """Steps for calls of one machine, whose name has been loaded; the last of them returns."""
    return [_op(_JUMP_EQUAL, machine, skip_if_false=len(steps)), *steps]


def _without_x32() -> list[bytes]:
    """Load the number of the call, and refuse those of x32, which are others."""
    return [_op(_LOAD, _NUMBER), _op(_JUMP_AT_LEAST, _X32, skip_if_false=1), _fail(errno.ENOSYS)]


def _when(number: int, steps: list[bytes]) -> list[bytes]:
    """Steps for one system call, whose number has been loaded; the last of them returns."""
    return [_op(_JUMP_EQUAL, number, skip_if_false=len(steps)), *steps] if number >= 0 else []


def _only(values: tuple[int, ...], position: int, refusal: int) -> list[bytes]:
    """Continue if the argument is one of these, else refuse."""
    tests = [_op(_JUMP_EQUAL, value, skip_if_true=len(values) - at) for at, value in enumerate(values)]
    return [_op(_LOAD, _ARGUMENTS + 8 * position), *tests, _fail(refusal)]


def _none_of(values: tuple[int, ...], position: int) -> list[bytes]:
    """Return: allowed where the argument is none of these."""
    tests = [_op(_JUMP_EQUAL, value, skip_if_true=len(values) - at) for at, value in enumerate(values)]
    return [_op(_LOAD, _ARGUMENTS + 8 * position), *tests, _op(_RETURN, _ALLOW), _fail(errno.EPERM)]


def _without_bits(bits: int, position: int) -> list[bytes]:
    """Return: allowed where the argument has none of these bits."""
    test = _op(_JUMP_ANY_BIT, bits, skip_if_false=1)
    return [_op(_LOAD, _ARGUMENTS + 8 * position), test, _fail(errno.EPERM), _op(_RETURN, _ALLOW)]
