"""The processes a command has started, wherever they went. Decides nothing about them.

A daemon leaves group and session and is adopted by somebody else, so these alone do not find it. What it keeps
unless it sheds it on purpose is its environment, which carries the command's mark, and its open files, among them
the command's spool. One that sheds all of that after its parent is gone is not found. Outside Linux only the group
can be told.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "MARK",
    "Process",
    "Traces",
    "belonging",
    "command_line",
    "is_alive",
    "keeps_namespace",
    "send",
    "start_time",
]

MARK = "GRAPH_AGENT_CALL"
"""Variable with the marks of the calls a process runs under: several, separated by commas, in nested agents."""

_SHOWN = 80


class Process(NamedTuple):
    """A process, told from every other that has had or will have its number."""

    pid: int
    started: str
    """As `start_time` tells it."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What the processes of one command are known by."""

    group: int
    """Of the command's first process, which leads group and session."""
    started: str
    """Start time of that process."""
    mark: str = ""
    spool: str = ""
    """Path of the file that takes the output, as the kernel names it."""


def start_time(pid: int) -> str:
    """When a process started, as the kernel tells it; empty when there is no such process or no way to know."""
    if sys.platform != "linux":
        return _ps("lstart=", pid)
    stat = _stat(pid)
    return "" if stat is None else str(stat.started)


def command_line(pid: int) -> str:
    """What a process runs, shortened; its number where that cannot be told."""
    if sys.platform != "linux":
        shown = _ps("command=", pid)
    else:
        shown = " ".join(_read(pid, "cmdline").decode("utf-8", "replace").split("\0")).strip()
    return f"{shown[:_SHOWN]} (pid {pid})" if shown else f"pid {pid}"


def belonging(traces: Traces) -> list[Process]:
    """The living processes of a command."""
    if not traces.started:
        return []
    return _by_group(traces) if sys.platform != "linux" else _by_traces(traces)


def send(process: Process, number: signal.Signals) -> None:
    """Signal exactly this process; nothing when it is gone, or not ours to signal."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "linux":
            if start_time(process.pid) == process.started:
                os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            # Looked at with the handle open: from here on the number cannot become another's unnoticed.
            if start_time(process.pid) == process.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def is_alive(process: Process) -> bool:
    """Whether exactly this process still runs."""
    if sys.platform != "linux":
        return start_time(process.pid) == process.started
    stat = _stat(process.pid)
    return stat is not None and stat.state not in "ZX" and str(stat.started) == process.started


def keeps_namespace(pid: int) -> bool:
    """Whether a pid namespace began with it: it is its first process, or the shell that waits in there.

    Neither is part of what the command started. Numbers are not given again while the namespace stands.
    """
    line = next((line for line in _read(pid, "status").split(b"\n") if line.startswith(b"NSpid:")), b"")
    numbers = line.split()[1:]
    return len(numbers) > 1 and int(numbers[-1]) <= 2


class _Stat(NamedTuple):
    state: str
    parent: int
    group: int
    session: int
    started: int


def _by_traces(traces: Traces) -> list[Process]:
    table = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
    leader = table.get(traces.group)
    # The number may be another's by now. While any of the group lives, it cannot be.
    is_still_its_own = leader is None or str(leader.started) == traces.started
    groups = {traces.group} if is_still_its_own else set()
    candidates = {
        pid: stat
        for pid, stat in table.items()
        if stat.state not in "ZX" and pid != os.getpid() and stat.started >= int(traces.started)
    }
    found = {
        pid
        for pid, stat in candidates.items()
        if groups & {stat.group, stat.session} or _carries(pid, traces.mark) or _writes(pid, stat, traces.spool)
    }
    while more := {pid for pid, stat in candidates.items() if pid not in found and stat.parent in found | groups}:
        found |= more
    return [Process(pid, str(table[pid].started)) for pid in sorted(found)]


def _by_group(traces: Traces) -> list[Process]:
    if start_time(traces.group) not in (traces.started, ""):
        return []
    listed = subprocess.run(["ps", "-ax", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=False)
    rows = [line.split() for line in listed.stdout.splitlines()]
    pids = [int(pid) for pid, group, stat in rows if int(group) == traces.group and not stat.startswith("Z")]
    return [Process(pid, started) for pid in pids if (started := start_time(pid))]


def _carries(pid: int, mark: str) -> bool:
    name = f"{MARK}=".encode()
    return bool(mark) and any(
        mark.encode() in variable.removeprefix(name).split(b",")
        for variable in _read(pid, "environ").split(b"\0")
        if variable.startswith(name)
    )


def _writes(pid: int, stat: _Stat, spool: str) -> bool:
    # What this process is just starting shares all open files until its program is loaded, and is no daemon.
    if not spool or stat.parent == os.getpid() or stat.session == os.getsid(0):
        return False
    return any(_opened_for_writing(pid, number) for number in _open_files(pid, spool))


def _open_files(pid: int, path: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names alone are cheaper
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") == path:  # noqa: PTH115 - the kernel's text, not a path
                    yield number


def _opened_for_writing(pid: int, number: str) -> bool:
    """Somebody who only reads along, `tail -f` for one, is no part of the command."""
    _, _, flags = _read(pid, f"fdinfo/{number}").partition(b"flags:")
    return bool(flags) and int(flags.split()[0], 8) & os.O_ACCMODE != os.O_RDONLY


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above


def _stat(pid: int) -> _Stat | None:
    # The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return _Stat(fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _ps(wanted: str, pid: int) -> str:
    asked = subprocess.run(["ps", "-o", wanted, "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
