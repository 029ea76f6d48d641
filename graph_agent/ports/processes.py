"""Which process is meant: a pid alone is used again by the kernel; with boot and start time it never is."""

import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["boot_id", "process_started"]

_STARTED = 19
"""Place in the kernel's line about a process, counted from its state."""


@cache
def boot_id() -> str:
    """What tells this run of the machine from every other; empty where the machine does not tell."""
    if sys.platform == "darwin":
        # The time of the boot would not do: it moves whenever the clock is set.
        return _output("sysctl", "-n", "kern.bootsessionuuid")
    return _read("sys/kernel/random/boot_id").strip()


def process_started(pid: int) -> str | None:
    """When the process started, in the kernel's own words; None when no such process runs."""
    if sys.platform == "darwin":
        return _output("ps", "-o", "lstart=", "-p", str(pid)) or None
    fields = _fields(pid)
    return None if fields is None else fields[_STARTED]


def _fields(pid: int) -> list[str] | None:
    """The fields of the kernel's line about a living process, from its state on."""
    # The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    fields = _read(f"{pid}/stat").rpartition(")")[2].split()
    return None if not fields or fields[0] in "ZX" else fields


def _read(name: str) -> str:
    try:
        return (Path("/proc") / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
