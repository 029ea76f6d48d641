"""Records of background shells, what a session needs of them, and how a process is identified across restarts."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from graph_agent.ports.storage import JournalRow

__all__ = [
    "BackgroundShells",
    "NewShell",
    "NoShells",
    "ShellEnding",
    "ShellNotices",
    "ShellRecord",
    "ShellRecords",
    "boot_id",
    "process_started",
]


@dataclass(frozen=True, slots=True)
class NewShell:
    """One that is about to be let go."""

    thread_id: str
    call_id: str
    attempt: int
    """With thread and call the key of its journal row, which holds its process group."""
    command: str
    folder: str
    """Where it starts."""


@dataclass(frozen=True, slots=True)
class ShellEnding:
    """How one ended, as it is written down once."""

    reason: str
    """One of `tools.shell_ops.background.Why`."""
    code: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ShellRecord:
    """One that was let go."""

    number: int
    """Never given twice in a database."""
    shell: NewShell
    started_at: str
    journal: JournalRow | None
    """The attempt that started it."""
    ended_at: str | None = None
    ending: ShellEnding | None = None
    read_from: int = 0
    """Where the last reading began."""
    read_until: int = 0
    """Where the next one begins."""
    read_by: str = ""
    """The call that read last: where it is run again it begins where it had begun."""


class ShellRecords(Protocol):
    """Durable when a method returns."""

    async def add(self, shell: NewShell) -> int:
        """Write one down; its number."""
        ...

    async def of_thread(self, thread_id: str) -> list[ShellRecord]:
        """Those of a thread, in order of their start."""
        ...

    async def running(self, thread_id: str) -> list[ShellRecord]:
        """Those without an ending of a thread and of what works for it."""
        ...

    async def get(self, number: int) -> ShellRecord | None:
        """One."""
        ...

    async def read(self, number: int, call_id: str, start: int, until: int) -> None:
        """Note how far a call has read."""
        ...

    async def end(self, number: int, ending: ShellEnding) -> bool:
        """Note how one ended; the first ending stands, and False tells that there was one."""
        ...


class ShellNotices(Protocol):
    """What became of a thread's background shells while the model looked elsewhere."""

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        """Each that ended without a call having told the model so: its id, and how it ended in a sentence."""
        ...


class BackgroundShells(Protocol):
    """The background shells of a session, as the session sees them."""

    async def reattach(self, thread_id: str) -> None:
        """Find what an earlier process left running, and end it or go on with it; it is told as events."""
        ...

    async def close(self) -> None:
        """End all that run, or let them be where the user wants that; it is told as events."""
        ...


class NoShells:
    """For sessions without any."""

    async def reattach(self, thread_id: str) -> None:
        """There is nothing."""

    async def close(self) -> None:
        """There is nothing."""

    async def ended(self, thread_id: str) -> Mapping[str, str]:  # noqa: ARG002 - port
        """There is nothing."""
        return {}


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
