"""A small filter of system calls, as the kernel takes it: for what Landlock cannot forbid. Needs no library."""

import errno
import platform
import struct

__all__ = ["compiled", "is_known_machine"]

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
"""Where in the kernel's description of a call these stand."""
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NAMESPACES = 0x7E020080
"""The flags of clone that make namespaces."""

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "arm64": (0xC00000B7, 1)}
"""The kernel's name for a machine, and the column of the tables below that holds its numbers."""
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
    (425, 425),  # io_uring_setup: its rings make sockets and open files past this filter
)


def is_known_machine(machine: str = "") -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return (machine or platform.machine()) in _MACHINES


def compiled(*, network: bool, machine: str = "") -> bytes:
    """The filter as an array of the kernel's instructions; without network only local sockets can be made."""
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
    """These steps for one system call, whose number has been loaded; the last of them returns."""
    return [_op(_JUMP_EQUAL, number, skip_if_false=len(steps)), *steps]


def _only(families: tuple[int, ...]) -> list[bytes]:
    """Return: allowed where the first argument is one of these."""
    tests = [_op(_JUMP_EQUAL, family, skip_if_true=len(families) - at) for at, family in enumerate(families)]
    return [_op(_LOAD, _FIRST_ARGUMENT), *tests, _fail(errno.EACCES), _op(_RETURN, _ALLOW)]


def _without(flags: int) -> list[bytes]:
    """Return: allowed where the first argument has none of these."""
    test = _op(_JUMP_ANY_BIT, flags, skip_if_false=1)
    return [_op(_LOAD, _FIRST_ARGUMENT), test, _fail(errno.EPERM), _op(_RETURN, _ALLOW)]
