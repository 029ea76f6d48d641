"""Which process is meant: a pid alone is used again by the kernel; with boot and start time it never is."""

import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["boot_id", "process_started"]


@cache
def boot_id() -> str:
    """What tells this run of the machine from every other."""
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "kern.boottime")
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def process_started(pid: int) -> str | None:
    """When the process started, in the kernel's own words; None when no such process runs."""
    if sys.platform == "darwin":
        return _output("ps", "-o", "lstart=", "-p", str(pid)) or None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
