import errno
import struct
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tools.sandbox.seccomp import bubblewrap_filter, is_known_machine, landlock_filter

_ALLOWED = 0x7FFF0000
_ERRNO = 0x00050000
_ALL_BITS = 0xFFFFFFFF


class _Abi(NamedTuple):
    """How a program calls the kernel: the filter's machine, the number of the calling form, and its column."""

    machine: str
    name: int
    column: int


_X86_64, _I386 = _Abi("x86_64", 0xC000003E, 0), _Abi("x86_64", 0x40000003, 2)
_AARCH64, _ARM = _Abi("aarch64", 0xC00000B7, 1), _Abi("aarch64", 0x40000028, 3)
_NATIVE = (_X86_64, _AARCH64)
_SOCKET, _CLONE, _IOCTL, _PRLIMIT, _SET_XATTR, _CHOWN_AT = (
    (41, 198),
    (56, 220),
    (16, 29),
    (302, 261),
    (188, 5),
    (260, 54),
)
_NEW_USER, _THREAD = 0x10000000, 0x3D0F00


def _answer(program: bytes, machine: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What the kernel would answer; interprets the few instructions that are used."""
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    described = {0: number, 4: machine} | {16 + 8 * at: value for at, value in enumerate(arguments)}
    loaded, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                loaded = described.get(value, 0)
            case 0x06:
                return int(value)
            case _:
                tests = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
                at += if_true if tests[code] else if_false


@pytest.fixture(params=_NATIVE, ids=lambda abi: str(abi.machine))
def abi(request: pytest.FixtureRequest) -> _Abi:
    found: _Abi = request.param
    return found


def _landlock(abi: _Abi, number: int, *arguments: int, network: bool = False) -> int:
    program = landlock_filter(network=network, machine=abi.machine, user=1000, group=100)
    return _answer(program, abi.name, number, arguments)


def test_only_local_sockets_can_be_created_without_network(abi: _Abi) -> None:
    families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17}

    def allowed(*, network: bool) -> list[str]:
        number = _SOCKET[abi.column]
        return [
            name for name, family in families.items() if _landlock(abi, number, family, network=network) == _ALLOWED
        ]

    assert allowed(network=False) == ["unix"]
    assert allowed(network=True) == ["unix", "inet", "inet6", "netlink"]


def test_threads_and_processes_can_be_created_and_namespaces_cannot(abi: _Abi) -> None:
    answers = [_landlock(abi, _CLONE[abi.column], flags) for flags in (17, _THREAD, _NEW_USER | 17)]

    assert answers == [_ALLOWED, _ALLOWED, _ERRNO | errno.EPERM]
    # Its flags cannot be seen; without it, programs take the older call.
    assert _landlock(abi, 435) == _ERRNO | errno.ENOSYS


def test_calls_of_another_machine_s_numbering_are_unknown(abi: _Abi) -> None:
    bubblewrap = bubblewrap_filter(abi.machine)

    assert _answer(landlock_filter(network=True, machine=abi.machine), 0x40000003, 1) == _ERRNO | errno.ENOSYS
    assert _landlock(abi, 0x40000000 + 41) == _ERRNO | errno.ENOSYS
    assert _answer(bubblewrap, abi.name, 0x40000000 + 250) == _ERRNO | errno.ENOSYS
    assert _answer(bubblewrap, 0x14, 1) == _ERRNO | errno.ENOSYS


_SHARED = {
    "add_key": ((248, 217, 286, 309), (), errno.EPERM),
    "request_key": ((249, 218, 287, 310), (), errno.EPERM),
    "keyctl": ((250, 219, 288, 311), (), errno.EPERM),
    "io_uring_setup": ((425, 425, 425, 425), (), errno.EPERM),
    "openat2": ((437, 437, 437, 437), (), errno.ENOSYS),
    "chmod u+s": ((90, -1, 15, 15), (0, 0o4755), errno.EPERM),
    "fchmod g+s": ((91, 52, 94, 94), (0, 0o2755), errno.EPERM),
    "fchmodat u+s": ((268, 53, 306, 333), (0, 0, 0o4755), errno.EPERM),
    "fchmodat2 u+s": ((452, 452, 452, 452), (0, 0, 0o4755), errno.EPERM),
    "creat u+s": ((85, -1, 8, 8), (0, 0o4755), errno.EPERM),
    "mknod u+s": ((133, -1, 14, 14), (0, 0o104755), errno.EPERM),
    "mknodat u+s": ((259, 33, 297, 324), (0, 0, 0o104755), errno.EPERM),
    "open with O_CREAT u+s": ((2, -1, 5, 5), (0, 0o101, 0o4755), errno.EPERM),
    "openat with O_CREAT u+s": ((257, 56, 295, 322), (0, 0, 0o101, 0o4755), errno.EPERM),
    "openat with O_TMPFILE u+s": ((257, 56, 295, 322), (0, 0, 0o20200001, 0o2755), errno.EPERM),
    "chmod": ((90, -1, 15, 15), (0, 0o1777), 0),
    "fchmodat": ((268, 53, 306, 333), (0, 0, 0o755), 0),
    "open with O_CREAT": ((2, -1, 5, 5), (0, 0o101, 0o644), 0),
    # Without O_CREAT the mode is whatever was in the register.
    "openat that reads": ((257, 56, 295, 322), (0, 0, 0, _ALL_BITS), 0),
    "read": ((0, 63, 3, 3), (), 0),
    "execve": ((59, 221, 11, 11), (), 0),
}


@pytest.mark.parametrize("name", _SHARED)
def test_in_both_forms_keyrings_and_set_id_files_are_closed(name: str) -> None:
    numbers, arguments, refusal = _SHARED[name]
    expected = _ERRNO | refusal if refusal else _ALLOWED
    checked = 0
    for abi in (_X86_64, _AARCH64, _I386, _ARM):
        if numbers[abi.column] < 0:
            continue
        programs = [bubblewrap_filter(abi.machine)]
        if abi in _NATIVE:
            programs.append(landlock_filter(network=True, machine=abi.machine))
        for program in programs:
            assert _answer(program, abi.name, numbers[abi.column], arguments) == expected, abi
            checked += 1

    assert checked == (4 if numbers[1] < 0 else 6)


@pytest.mark.parametrize(
    ("numbers", "arguments", "expected"),
    [
        (_SET_XATTR, (), _ERRNO | errno.EOPNOTSUPP),
        (_CHOWN_AT, (0, 0, 1000, 100), _ALLOWED),
        (_CHOWN_AT, (0, 0, _ALL_BITS, _ALL_BITS), _ALLOWED),
        (_CHOWN_AT, (0, 0, 0, _ALL_BITS), _ERRNO | errno.EPERM),
        (_CHOWN_AT, (0, 0, 1000, 27), _ERRNO | errno.EPERM),
        (_IOCTL, (0, 0x40086602), _ERRNO | errno.EPERM),
        (_IOCTL, (0, 0x401C5820), _ERRNO | errno.EPERM),
        (_IOCTL, (0, 0x5401), _ALLOWED),
        (_PRLIMIT, (0,), _ALLOWED),
        (_PRLIMIT, (1,), _ERRNO | errno.EPERM),
    ],
)
def test_beside_landlock_files_outside_keep_owner_and_attributes(
    abi: _Abi, numbers: tuple[int, int], arguments: tuple[int, ...], expected: int
) -> None:
    assert _landlock(abi, numbers[abi.column], *arguments) == expected
    # Where nothing outside can be written, none of this is needed.
    assert _answer(bubblewrap_filter(abi.machine), abi.name, numbers[abi.column], arguments) == _ALLOWED


def test_the_machines_are_known_by_name() -> None:
    assert [is_known_machine(name) for name in ("x86_64", "aarch64", "arm64", "riscv64")] == [
        True,
        True,
        True,
        False,
    ]
