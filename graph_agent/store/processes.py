"""Which process is meant: a pid alone is used again by the kernel; with boot and start time it never is."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["Process", "boot_id", "members_of", "process_started"]

_GROUP, _SESSION, _STARTED = 2, 3, 19
"""Places in the kernel's line about a process, counted from its state."""


@cache
def boot_id() -> str:
    """What tells this run of the machine from every other."""
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "kern.boottime")
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class Process(NamedTuple):
    """A living process, told from every other."""

    pid: int
    started: str
    """As `process_started` tells it."""


def process_started(pid: int) -> str | None:
    """When the process started, in the kernel's own words; None when no such process runs."""
    if sys.platform == "darwin":
        return _output("ps", "-o", "lstart=", "-p", str(pid)) or None
    fields = _fields(pid)
    return None if fields is None else fields[_STARTED]


def members_of(group: int) -> list[Process]:
    """The living processes of a group that leads a session of its own, and of groups inside that session."""
    if sys.platform == "darwin":
        listed = [line.split() for line in _output("ps", "-ax", "-o", "pid=,pgid=,stat=").splitlines()]
        pids = [int(pid) for pid, pgid, stat in listed if int(pgid) == group and not stat.startswith("Z")]
        return [Process(pid, started) for pid in pids if (started := process_started(pid))]
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names alone are cheaper
    looked = [(pid, fields) for pid in pids if (fields := _fields(pid)) is not None]
    return [Process(pid, fields[_STARTED]) for pid, fields in looked if str(group) in fields[_GROUP : _SESSION + 1]]


def _fields(pid: int) -> list[str] | None:
    """The fields of the kernel's line about a living process, from its state on."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
