"""A command in a session of its own: held back until it is let go, watched, and ended with everything it started.

Nothing is piped through this process: the command writes into a file, so nothing is lost when the agent dies.

In a sandbox with processes of its own all of a command would end with its first process, unseen. So a shell waits
in there with it, tells how it ended, and keeps the rest alive until that was looked at.

The processes a command has started, wherever they went. Decides nothing about them.

A daemon leaves group and session and is adopted by somebody else, so these alone do not find it. What it keeps
unless it sheds it on purpose is its environment, which carries the command's mark, and its open files, among them
the command's spool. One that sheds all of that after its parent is gone is not found. Outside Linux only the group
can be told.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CALL_MARK",
    "ChildProcess",
    "Process",
    "ProcessTraces",
    "command_line",
    "find_processes",
    "is_alive",
    "is_namespace_init",
    "send_signal",
    "start_time",
]

CALL_MARK = "GRAPH_AGENT_CALL"
"""Variable with the marks of the calls a process runs under: several, separated by commas, in nested agents."""

_SHOWN = 80


class Process(NamedTuple):
    """A process, told from every other that has had or will have its number."""

    pid: int
    started: str
    """As `start_time` tells it."""


@dataclass(frozen=True, slots=True)
class ProcessTraces:
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


def find_processes(traces: ProcessTraces) -> list[Process]:
    """The living processes of a command."""
    if not traces.started:
        return []
    return _by_group(traces) if sys.platform != "linux" else _by_traces(traces)


def send_signal(process: Process, number: signal.Signals) -> None:
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


def is_namespace_init(pid: int) -> bool:
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


def _by_traces(traces: ProcessTraces) -> list[Process]:
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


def _by_group(traces: ProcessTraces) -> list[Process]:
    if start_time(traces.group) not in (traces.started, ""):
        return []
    listed = subprocess.run(["ps", "-ax", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=False)
    rows = [line.split() for line in listed.stdout.splitlines()]
    pids = [int(pid) for pid, group, stat in rows if int(group) == traces.group and not stat.startswith("Z")]
    return [Process(pid, started) for pid in pids if (started := start_time(pid))]


def _carries(pid: int, mark: str) -> bool:
    name = f"{CALL_MARK}=".encode()
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


_GATE = 'IFS= read -r go || exit 125; exec "$@" </dev/null'
"""The shell waits at its input for a line. When the agent dies first, the input ends and nothing is run."""
_GATE_WITHIN = (
    "exec {kept}>&1 >/dev/null 2>&1; trap : TERM; IFS= read -r go || exit 125; echo begun >&0; "
    '(exec "$@" </dev/null >&{kept} 2>&1 {kept}>&-); code=$?; echo "$code" >&0; IFS= read -r go; exit "$code"'
)
"""The same in a sandbox: its input is a socket, on which it tells that the command began and how it ended. What it
has to say of its own goes nowhere: the output, one file for both streams, is the command's."""
_TERM_GRACE_S = 2.0
_LOOK_S = 0.01
"""How often the exit is looked for where the kernel does not tell it."""
_LINGER_S = 0.2
"""What ends by itself right after the command, the reader of its output for one, is let do so."""
_LEFT_GRACE_S = 1.0
_ROUNDS = 5
"""A process may fork while the others are being read; after a few rounds nothing new can be left."""


class ChildProcess:
    """One command. Create it, `release` it, wait for `ended`, then `end_all`, whatever happened in between.

    Args:
        arguments: the command.
        cwd: where it starts.
        environment: all of its variables.
        output: takes both its streams.
        report: a descriptor that it gets besides.
        mark: what its processes carry, see `MARK`.
        walls: what starts a program in a pid namespace of its own; none for a command without.
    """

    def __init__(
        self,
        arguments: list[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        output: int,
        report: int,
        mark: str = "",
        walls: Sequence[str] = (),
    ) -> None:
        self._walls = tuple(walls)
        self._gate, gate = socket.socketpair()
        self._said = b""
        try:
            self._process = subprocess.Popen(
                [*walls, "/bin/sh", "-c", _within(report, output) if walls else _GATE, "gate", *arguments],
                stdin=gate.fileno(),
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
                # The spool once more, for it to be known by: a daemon redirects its three streams.
                pass_fds=(report, output),
            )
        except BaseException:
            self._gate.close()
            raise
        finally:
            gate.close()
        self._gate.settimeout(0)
        group = self._process.pid
        spool = os.readlink(f"/proc/self/fd/{output}") if sys.platform == "linux" else ""  # noqa: PTH115 - kernel's text
        self._traces = ProcessTraces(group, start_time(group), mark, spool)
        self._is_released = False
        self._is_over = False
        self._exit = os.pidfd_open(self._process.pid) if sys.platform == "linux" else None

    @property
    def traces(self) -> ProcessTraces:
        """What its processes are known by; the command leads its own session, so it is its own group."""
        return self._traces

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the signal; known after `end_all`. In a sandbox a signal is 128 and its number."""
        return self._process.returncode if self._code is None else self._code

    @property
    def is_sandboxed(self) -> bool:
        """Whether it runs in a namespace of its own."""
        return bool(self._walls)

    @property
    def began(self) -> bool:
        """Whether the command itself was started, and not only its walls; known when it has ended."""
        return not self._walls or bool(self._said)

    @property
    def _code(self) -> int | None:
        """What the shell within told of the command's end."""
        _, *told = self._said.split(b"\n")
        return int(told[0]) if len(told) > 1 else None

    def release(self) -> None:
        """Let the command run."""
        self._is_released = True
        # A pipe that is broken means: killed from outside while it waited. Its exit will say so.
        with contextlib.suppress(BrokenPipeError):
            self._gate.send(b"go\n")
        if not self._walls:
            self._gate.close()

    def ended(self) -> bool:
        """Whether the command's first process has exited. It stays unreaped, so that its group cannot be reused."""
        if self._walls and self._has_told():
            return True
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    async def wait(self, seconds: float) -> bool:
        """Wait for the first process to exit, this long at most; whether it has."""
        if self.ended():
            return True
        if self._exit is None:
            await asyncio.sleep(min(seconds, _LOOK_S))
            return self.ended()
        stirred = asyncio.Event()
        loop = asyncio.get_running_loop()
        watched = (self._exit, self._gate.fileno()) if self._walls else (self._exit,)
        for handle in watched:
            loop.add_reader(handle, stirred.set)
        try:
            async with asyncio.timeout(seconds):
                await stirred.wait()
        except TimeoutError:
            return False
        finally:
            for handle in watched:
                loop.remove_reader(handle)
        return self.ended()

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little; a second cancellation cuts the waiting short."""
        if not self._walls:
            self._signal(signal.SIGTERM)
        elif not self._is_released:
            return  # Nothing is in the walls yet. Their own group is never asked to end: they would fall at once.
        for process in self._left():
            send_signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        try:
            while time.monotonic() < deadline and not await self.wait(deadline - time.monotonic()):
                continue
        except asyncio.CancelledError:
            return

    async def end_leftovers(self) -> tuple[str, ...]:
        """After its first process has exited: ask what it left running to end; in words, what that was."""
        if await self._are_gone(_LINGER_S):
            return ()
        left = self._left()
        named = tuple(command_line(process.pid) for process in left)
        for process in left:
            send_signal(process, signal.SIGTERM)
        await self._are_gone(_LEFT_GRACE_S)
        return named

    def kill_all(self) -> None:
        """Kill what is left of it and reap the command. Safe to call at any time, and twice."""
        if self._is_over:
            return
        self._is_over = True
        kept = (
            [process for process in find_processes(self._traces) if is_namespace_init(process.pid)]
            if self._walls
            else []
        )
        self._signal(signal.SIGKILL)
        for _ in range(_ROUNDS):
            left = self._left()
            if not left:
                break
            for process in left:
                send_signal(process, signal.SIGKILL)
        self._process.wait()
        _wait_for_end(kept)
        self._gate.close()
        if self._exit is not None:
            os.close(self._exit)

    def detach(self) -> None:
        """Look at it no more and end nothing: it goes on without this process."""
        self._is_over = True
        # It would be complained of as a process that nobody waited for.
        self._process.returncode = self._process.poll() or 0
        self._gate.close()
        if self._exit is not None:
            os.close(self._exit)

    def _has_told(self) -> bool:
        """Whether the shell within has told how the command ended."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._said += self._gate.recv(64)
        return self._code is not None

    def _left(self) -> list[Process]:
        """What lives besides the first process, which is reaped on its own, and what keeps the walls up."""
        left = [process for process in find_processes(self._traces) if process.pid != self._traces.group]
        return [process for process in left if not is_namespace_init(process.pid)] if self._walls else left

    async def _are_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._left():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            # The group is gone, or (macOS) holds only processes that have exited already.
            return


def _within(*used: int) -> str:
    """The script of the shell within; shells know descriptors of one digit only."""
    return _GATE_WITHIN.format(kept=next(number for number in range(3, 10) if number not in used))


def _wait_for_end(processes: Sequence[Process]) -> None:
    """Wait for processes that have been killed: the first of a namespace is gone when all others are."""
    deadline = time.monotonic() + _LEFT_GRACE_S
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S / 10)
