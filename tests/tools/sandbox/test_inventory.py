import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.sandboxed_process import OTHER_USER, SandboxedProcess, sandboxed_process
from tools.sandbox.sandbox import _PROC_UNREADABLE

_FORMS = [(kind, user) for kind in ("bubblewrap", "landlock") for user in ("this user", "another user")]


@pytest.fixture(params=_FORMS, ids=" as ".join)
def process(request: pytest.FixtureRequest) -> Iterator[SandboxedProcess]:
    kind, user = request.param
    with sandboxed_process(kind, os.getuid() if user == "this user" else OTHER_USER) as made:
        yield made


_INVENTORY = """
import json, os, stat, sys

accessible, opened, looked = [], [], 0
for top, folders, files in os.walk("/"):
    if top == sys.argv[1]:
        folders.clear()
        continue
    if top.startswith("/proc/") and top.count("/") > 2:
        folders.clear()  # Tasks and descriptors of a process: its own names for what is elsewhere.
        continue
    looked += 1 + len(files)
    paths = [os.path.join(top, name) for name in files]
    for path in [os.path.join(top, ".inventory"), *paths]:
        if path not in paths:
            if os.access(top, os.W_OK | os.X_OK):
                accessible.append(top + "/")
            flags = os.O_CREAT | os.O_EXCL
        elif os.path.islink(path) or "watchdog" in path:
            continue  # A watchdog that is opened restarts the machine.
        else:
            if os.access(path, os.W_OK):
                accessible.append(path)
            flags = os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600))
        except OSError:
            continue
        opened.append(path if path in paths else top + "/")
        if path not in paths:
            os.unlink(path)
with open("inventory.json", "w") as file:
    json.dump({"looked": looked, "accessible": accessible, "opened": opened}, file)
"""

_DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx")}
_OWN_OF_BUBBLEWRAP = ("/dev/", "/run/", "/tmp/", "/var/tmp/", "/proc/1/", "/proc/2/")
"""File systems of the sandbox's own, and its own processes."""


_MASKED = {f"/proc/{name}" for name in _PROC_UNREADABLE}
"""A closed device, whose mode would allow everything, is in their place."""


def _is_promised(path: str, process: SandboxedProcess) -> bool:
    if process.kind == "landlock":
        return path in _DEVICES or path.startswith(f"{process.folder}/graph-agent-{process.user}/")
    # The folder for temporary files appears where the shared ones are.
    own_process = path.startswith("/proc/") and path.split("/")[2].isdigit()
    return path.startswith((*_OWN_OF_BUBBLEWRAP, f"{process.folder}/")) or own_process


@pytest.mark.slow
def test_everything_that_is_writable_in_the_sandbox_is_promised(process: SandboxedProcess) -> None:
    (process.folder / "workspace" / "inventory.py").write_text(_INVENTORY)

    output, metadata = process.run(f"{process.python} inventory.py {process.workspace}")

    assert (metadata["exit_code"], metadata["sandbox"]) == (0, process.kind), output
    found = json.loads((process.workspace / "inventory.json").read_text())
    assert found["looked"] > 10_000
    assert [path for path in found["opened"] if not _is_promised(path, process)] == []
    # The kernel does not ask Landlock what may be accessed, only when something is opened.
    if process.kind == "bubblewrap":
        assert {path for path in found["accessible"] if not _is_promised(path, process)} <= _MASKED
    assert {"/dev/null", "/dev/zero"} <= set(found["opened"])


_READABLE_DEVICES = """
import os, stat

for top, folders, files in os.walk("/dev"):
    for path in [os.path.join(top, name) for name in files]:
        is_device = stat.S_ISCHR(os.lstat(path).st_mode) or stat.S_ISBLK(os.lstat(path).st_mode)
        if not is_device or "watchdog" in path:
            continue
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
        except OSError:
            continue
        print(path)
"""


def test_no_device_can_be_read_that_would_show_a_disk_or_a_terminal(process: SandboxedProcess) -> None:
    (process.workspace / "devices.py").write_text(_READABLE_DEVICES)

    output, _ = process.run(f"{process.python} devices.py")

    found = {line for line in output.splitlines() if line.startswith("/dev/")}
    assert {"/dev/null", "/dev/urandom"} <= found <= _DEVICES | {"/dev/pts/ptmx"}


_CHANGES = """
import ctypes, fcntl, json, os, struct, sys

def attributes(path):
    handle = os.open(path, os.O_RDONLY)
    fcntl.ioctl(handle, 0x40086602, struct.pack("l", 0x80))

def create_set_id(path):
    os.umask(0)
    os.close(os.open(path + ".new", os.O_CREAT | os.O_WRONLY, 0o4755))
    if not os.stat(path + ".new").st_mode & 0o4000:
        raise OSError

def other_group(path):
    groups = [group for group in os.getgroups() if group != os.getegid()] or [os.getegid() + 1]
    os.chown(path, -1, groups[0])

changes = {
    "write": lambda path: open(path, "a").close(),
    "truncate": lambda path: os.truncate(path, 0),
    "mode": lambda path: os.chmod(path, 0o640),
    "set-id mode": lambda path: os.chmod(path, 0o4755),
    "set-id mode of a folder": lambda path: os.chmod(os.path.dirname(path), 0o2755),
    "set-id file": create_set_id,
    "owner": lambda path: os.chown(path, os.geteuid() + 1, -1),
    "group": other_group,
    "times": lambda path: os.utime(path, (1, 1)),
    "extended attribute": lambda path: os.setxattr(path, "user.note", b"x"),
    "attributes": attributes,
    "rename": lambda path: os.rename(path, path + ".moved"),
    "hard link": lambda path: os.link(path, "linked"),
    "remove": os.unlink,
}
done = {}
for place, path in (("outside", sys.argv[1]), ("inside", "inside/file")):
    done[place] = []
    for name, change in changes.items():
        try:
            change(path)
        except OSError:
            continue
        done[place].append(name)
        if name == "rename":
            os.rename(path + ".moved", path)
print(json.dumps(done))
"""


def test_of_files_outside_only_mode_and_times_can_be_changed_and_only_with_landlock(
    process: SandboxedProcess,
) -> None:
    place = process.folder / "outside"
    (process.workspace / "inside").mkdir()
    place.mkdir()
    for path in (place / "file", process.workspace / "inside" / "file"):
        path.write_text("text")
        for each in (path, path.parent):
            os.chown(each, process.user, process.user)
    (process.workspace / "changes.py").write_text(_CHANGES)
    # Below the folder for temporary files it would be hidden.
    command = f"{process.python} changes.py {place}/file"

    output, _ = process.run(command, environment={"TMPDIR": str(process.workspace)})

    done = json.loads(output.splitlines()[0])
    assert done["outside"] == (["mode", "times"] if process.kind == "landlock" else []), output
    everyday = {"write", "truncate", "mode", "times", "rename", "hard link", "remove"}
    assert everyday <= set(done["inside"])
    assert not {"set-id mode", "set-id mode of a folder", "set-id file", "owner"} & set(done["inside"])


_KEYRING = """
import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
join, search, read, session = 1, 10, 11, -3
"""
_PUT_KEY = f"""{_KEYRING}
assert call({{keyctl}}, join, None) >= 0
assert call({{add_key}}, b"user", b"agent", b"secret of the session", 21, session) >= 0
"""
_GET_KEY = f"""{_KEYRING}
key = call({{keyctl}}, search, session, b"user", b"agent", 0)
kept = ctypes.create_string_buffer(64)
size = call({{keyctl}}, read, key, kept, 64) if key >= 0 else -1
made = call({{add_key}}, b"user", b"other", b"x", 1, session)
print(kept.value.decode() if size > 0 else "no key", "made" if made >= 0 else "made none")
"""
_NUMBERS = {"x86_64": {"keyctl": 250, "add_key": 248}, "aarch64": {"keyctl": 219, "add_key": 217}}


@pytest.mark.parametrize("user", ["this user", "another user"])
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("bubblewrap", "no key made none"),
        ("landlock", "no key made none"),
        # That shows that the key is there.
        ("none", "secret of the session made"),
    ],
)
def test_keys_in_the_session_keyring_are_out_of_reach(kind: str, found: str, user: str) -> None:
    numbers = _NUMBERS.get(os.uname().machine)
    if numbers is None:
        pytest.skip(f"NOT TESTED: the system calls of {os.uname().machine} are not known here")
    with sandboxed_process(kind, os.getuid() if user == "this user" else OTHER_USER) as process:
        (process.workspace / "get.py").write_text(_GET_KEY.format(**numbers))
        output, _ = process.run(f"{process.python} get.py", before=_PUT_KEY.format(**numbers))

    assert output.splitlines()[0] == found


_SHARED_MEMORY = Path("/dev/shm")
_SEMAPHORE = "import multiprocessing; multiprocessing.Lock(); print('made')"


def test_shared_memory_is_the_sandbox_s_own_or_closed_until_it_is_named(process: SandboxedProcess) -> None:
    command = f'{process.python} -c "{_SEMAPHORE}" 2>&1 | tail -n 1'
    name = _SHARED_MEMORY / f"graph-agent-{process.kind}-{process.user}"

    plain, _ = process.run(f"{command}; echo x > {name} && echo wrote")
    named, _ = process.run(command, writable=() if process.kind == "bubblewrap" else (_SHARED_MEMORY,))

    is_own = process.kind == "bubblewrap"
    assert (plain.startswith("made"), "\nwrote\n" in plain) == (is_own, is_own)
    assert (named.startswith("made"), name.exists()) == (True, False)
