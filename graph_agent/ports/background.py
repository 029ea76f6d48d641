"""Records of background shells, what a session needs of them, and how a process is identified across restarts."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from graph_agent.ports.storage import JournalRow

__all__ = [
    "BackgroundShells",
    "BackgroundTask",
    "NewShell",
    "NoShells",
    "ShellEnding",
    "ShellRecord",
    "ShellRecords",
    "boot_id",
    "process_started",
]


@dataclass(frozen=True, slots=True)
class NewShell:
    """A shell that is about to be started."""

    thread_id: str
    call_id: str
    attempt: int
    """With thread and call the key of its journal row, which holds its process group."""
    command: str
    folder: str
    """Where it starts."""


@dataclass(frozen=True, slots=True)
class ShellEnding:
    """How a shell ended; recorded once."""

    reason: str
    """One of `tools.shell_ops.background.Why`."""
    code: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ShellRecord:
    """A shell that was started."""

    number: int
    """Never given twice in a database."""
    shell: NewShell
    started_at: str
    journal: "JournalRow | None"
    """The attempt that started it."""
    ended_at: str | None = None
    ending: ShellEnding | None = None
    read_from: int = 0
    """Where the last reading began."""
    read_until: int = 0
    """Where the next one begins."""
    read_by: str = ""
    """The call that read last: if it runs again, it begins where it had begun."""


class ShellRecords(Protocol):
    """Durable when a method returns."""

    async def add(self, shell: NewShell) -> int:
        """Record a shell; returns its number."""

    async def of_thread(self, thread_id: str) -> list[ShellRecord]:
        """The shells of a thread, in order of their start."""

    async def running(self, thread_id: str) -> list[ShellRecord]:
        """The shells of a thread and of its sub-agents that have not ended."""

    async def get(self, number: int) -> ShellRecord | None: ...

    async def read(self, number: int, call_id: str, start: int, until: int) -> None:
        """Record how far a call has read."""

    async def end(self, number: int, ending: ShellEnding) -> bool:
        """Record how a shell ended; False, and nothing changes, if an ending is already recorded."""


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """What runs beside the conversation of a thread."""

    task_id: str
    """Of a command the shell's id, of a sub-agent that of its call."""
    kind: Literal["command", "sub-agent"]
    title: str
    state: str
    thread_id: str = ""
    """The thread of a sub-agent."""


class BackgroundShells(Protocol):
    """The background shells of a session; by default there are none."""

    async def reattach(self, thread_id: str) -> None:
        """Find what an earlier process left running, and end it or take it over; both are published as events."""
        return

    async def ended(self, thread_id: str) -> Mapping[str, str]:
        """Id, and a sentence about its end, of each shell of the thread whose end no call has reported."""
        return {}

    @property
    def running_count(self) -> int:
        """How many run in this process, without reading anything."""
        return 0

    async def running(self, thread_id: str) -> list[BackgroundTask]:
        """The shells of the thread that run in this process."""
        return []

    async def stop(self, shell_id: str) -> bool:
        """End a shell for the user; False if it does not run in this process."""
        return False

    async def output(self, shell_id: str) -> str | None:
        """The end of what it wrote; None if there is no such shell."""
        return None

    async def close(self) -> None:
        """End all running shells, or keep them if the user wants that; publishes an event for each."""
        return


class NoShells(BackgroundShells):
    """For sessions without background shells."""


_STARTED = 19
"""Place in the kernel's line about a process, counted from its state."""


@cache
def boot_id() -> str:
    """An id of this boot of the machine; empty where the system has none."""
    if sys.platform == "darwin":
        # The time of the boot would not do: it moves whenever the clock is set.
        return _output("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    return _read("sys/kernel/random/boot_id").strip()


def process_started(pid: int) -> str | None:
    """When the process started, in the kernel's own words; None when no such process runs."""
    if sys.platform == "darwin":
        return _output("/bin/ps", "-o", "lstart=", "-p", str(pid)) or None
    # The second field is the program's name in parentheses and may hold blanks and parentheses itself.
    fields = _read(f"{pid}/stat").rpartition(")")[2].split()
    return None if not fields or fields[0] in "ZX" else fields[_STARTED]


def _read(name: str) -> str:
    try:
        return (Path("/proc") / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _output(*command: str) -> str:
    import subprocess  # noqa: PLC0415 - commands that only read do without

    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
