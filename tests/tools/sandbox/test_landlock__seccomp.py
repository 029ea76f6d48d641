import errno
import struct

import pytest

from tools.sandbox.landlock import compiled, is_known_machine

_ALLOWED = 0x7FFF0000
_ERRNO = 0x00050000
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE = {"x86_64": 56, "aarch64": 220}
_NEW_USER, _THREAD = 0x10000000, 0x3D0F00


def _answer(program: bytes, machine: int, number: int, argument: int = 0) -> int:
    """What the kernel would answer: the few instructions that are used, carried out."""
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    described, loaded, at = {0: number, 4: machine, 16: argument}, 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                loaded = described[value]
            case 0x06:
                return int(value)
            case _:
                tests = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
                at += if_true if tests[code] else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_only_local_sockets_can_be_made_without_network(machine: str) -> None:
    closed, opened = compiled(network=False, machine=machine), compiled(network=True, machine=machine)
    families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17}

    def allowed(program: bytes) -> list[str]:
        call = (_MACHINES[machine], _SOCKET[machine])
        return [name for name, family in families.items() if _answer(program, *call, family) == _ALLOWED]

    assert (allowed(closed), allowed(opened)) == (["unix"], ["unix", "inet", "inet6", "netlink"])


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_threads_and_processes_can_be_made_and_namespaces_cannot(machine: str) -> None:
    program = compiled(network=False, machine=machine)
    call = (_MACHINES[machine], _CLONE[machine])

    answers = [_answer(program, *call, flags) for flags in (17, _THREAD, _NEW_USER | 17)]

    assert answers == [_ALLOWED, _ALLOWED, _ERRNO | errno.EPERM]
    # Its flags cannot be seen; without it, programs take the older call.
    assert _answer(program, _MACHINES[machine], 435) == _ERRNO | errno.ENOSYS


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_of_another_machine_s_numbering_are_unknown(machine: str) -> None:
    program = compiled(network=True, machine=machine)

    assert _answer(program, 0x40000003, 1) == _ERRNO | errno.ENOSYS
    assert _answer(program, _MACHINES[machine], 0x40000000 + 41) == _ERRNO | errno.ENOSYS


def test_reading_is_allowed_and_rings_past_the_filter_are_not() -> None:
    program = compiled(network=True, machine="x86_64")

    assert (_answer(program, 0xC000003E, 0), _answer(program, 0xC000003E, 425)) == (_ALLOWED, _ERRNO | errno.EPERM)


def test_an_unknown_machine_is_known_to_be_unknown() -> None:
    assert (is_known_machine("x86_64"), is_known_machine("riscv64")) == (True, False)
