"""Whether the process that a lease names still lives. Looks at the process table only and takes no lock."""

import socket
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Lease", "is_alive"]


@dataclass(frozen=True, slots=True)
class Lease:
    """Who took the thread last."""

    pid: int
    process_started: str
    """Start time as the kernel tells it; with the boot id it makes the pid unique."""
    boot_id: str
    host: str
    since: str
    ended_at: str | None = None
    """None while held, and after a crash."""


def is_alive(lease: Lease) -> bool:
    """Whether the lease is neither ended nor left behind by a process that died or a machine that restarted.

    A process on another host counts as alive: it cannot be looked at.
    """
    if lease.ended_at is not None:
        return False
    if lease.host != socket.gethostname():
        return True
    return lease.boot_id == _boot_id() and _start_of(lease.pid) == lease.process_started


@cache
def _boot_id() -> str:
    if sys.platform == "darwin":
        return _output_of("sysctl", "-n", "kern.boottime")
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    if sys.platform == "darwin":
        return _output_of("ps", "-o", "lstart=", "-p", str(pid)) or None
    try:
        # The command name in parentheses may itself hold spaces and parentheses.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    is_dead = state in ("Z", "X")
    return None if is_dead else fields[18]


def _output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
