import errno
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.sandboxes import needs
from tools.sandbox import landlock
from tools.sandbox.landlock import FAILED, is_known_machine, readable_around, seccomp_filter


def _launched(rules: object, *program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(rules), *program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_everything_is_readable_around_what_is_hidden(tmp_path: Path) -> None:
    for name in ("a/key", "a/open", "b/open"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a/key")

    found = readable_around([str(tmp_path / "a" / "key")])

    here = [path for path in found if path.startswith(str(tmp_path))]
    assert here == [str(tmp_path / "a" / "open"), str(tmp_path / "b")]
    assert str(Path("/usr")) in found
    assert readable_around([]) == ["/"]


def test_the_launcher_becomes_the_program_without_output(tmp_path: Path) -> None:
    needs("landlock")
    steps = seccomp_filter(network=False).hex()
    rules = {"writable": [str(tmp_path)], "hidden": [], "network": False, "filter": steps}

    done = _launched(rules, "/bin/sh", "-c", f"echo x > {tmp_path}/in; echo x > /new; exit 7")

    assert (done.returncode, done.stdout, (tmp_path / "in").read_text()) == (7, "", "x\n")
    assert not Path("/new").exists()


def test_the_launcher_starts_nothing_when_it_cannot_confine_itself(tmp_path: Path) -> None:
    rules = {"writable": [], "hidden": [], "network": False, "filter": "0000"}

    done = _launched(rules, "/bin/sh", "-c", f"touch {tmp_path}/witness")

    assert (done.returncode, (tmp_path / "witness").exists()) == (FAILED, False)
    assert done.stderr.startswith("sandbox: could not be set up, and nothing was started: ")
    assert _launched([], "/bin/true").returncode != 0


_ALLOWED = 0x7FFF0000
_ERRNO = 0x00050000
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE = {"x86_64": 56, "aarch64": 220}
_NEW_USER, _THREAD = 0x10000000, 0x3D0F00


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _answer(program: bytes, machine: int, number: int, argument: int = 0) -> int:
    """What the kernel would answer; interprets the few instructions that are used."""
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


def test_only_local_sockets_can_be_created_without_network(machine: str) -> None:
    closed, opened = (seccomp_filter(network=network, machine=machine) for network in (False, True))
    families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17}

    def allowed(program: bytes) -> list[str]:
        call = (_MACHINES[machine], _SOCKET[machine])
        return [name for name, family in families.items() if _answer(program, *call, family) == _ALLOWED]

    assert (allowed(closed), allowed(opened)) == (["unix"], ["unix", "inet", "inet6", "netlink"])


def test_threads_and_processes_can_be_created_and_namespaces_cannot(machine: str) -> None:
    program = seccomp_filter(network=False, machine=machine)
    call = (_MACHINES[machine], _CLONE[machine])

    answers = [_answer(program, *call, flags) for flags in (17, _THREAD, _NEW_USER | 17)]

    assert answers == [_ALLOWED, _ALLOWED, _ERRNO | errno.EPERM]
    # Its flags cannot be seen; without it, programs take the older call.
    assert _answer(program, _MACHINES[machine], 435) == _ERRNO | errno.ENOSYS


def test_calls_of_another_machine_s_numbering_are_unknown(machine: str) -> None:
    program = seccomp_filter(network=True, machine=machine)

    assert _answer(program, 0x40000003, 1) == _ERRNO | errno.ENOSYS
    assert _answer(program, _MACHINES[machine], 0x40000000 + 41) == _ERRNO | errno.ENOSYS


def test_read_is_allowed_and_io_uring_is_not() -> None:
    program = seccomp_filter(network=True, machine="x86_64")

    assert (_answer(program, 0xC000003E, 0), _answer(program, 0xC000003E, 425)) == (_ALLOWED, _ERRNO | errno.EPERM)
    assert (is_known_machine("x86_64"), is_known_machine("riscv64")) == (True, False)
