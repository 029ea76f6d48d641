"""Processes of commands: a child that waits for its release, is watched and ends with all that it started.

The command writes into a file and not through this process, so no output is lost when the agent dies.

A daemon leaves its group and session and gets another parent, so these alone do not find it. Unless it drops them
on purpose, it keeps its environment, which carries the command's mark, and its open files, among them the
command's spool. One that drops all of that after its parent has exited is not found. Outside Linux only the group
is known.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "CALL_MARK",
    "ChildProcess",
    "Process",
    "ProcessTraces",
    "ResourceUsage",
    "command_line",
    "find_processes",
    "is_alive",
    "is_namespace_init",
    "resource_usage",
    "send_signal",
    "shell_prelude",
    "start_time",
    "strip_prelude",
]

CALL_MARK = "GRAPH_AGENT_CALL"
"""Variable with the marks of the calls that a process belongs to: several, with commas, in nested agents."""

_MAX_COMMAND_CHARS = 80
_PS = "/bin/ps"


class Process(NamedTuple):
    """A process, distinct from all others that have had or will have its number."""

    pid: int
    started: str
    """As `start_time` returns it."""


@dataclass(frozen=True, slots=True)
class ProcessTraces:
    """What identifies the processes of one command."""

    group: int
    """Of the command's first process, which leads its group and session."""
    started: str
    """Start time of that process."""
    mark: str = ""
    spool: str = ""
    """Path of the file with its output, as the kernel names it."""


def start_time(pid: int) -> str:
    """When a process started, as the kernel writes it; empty if there is no such process or no way to know."""
    if sys.platform != "linux":
        return _ps("lstart=", pid)
    stat = _stat(pid)
    return "" if stat is None else str(stat.started)


def command_line(pid: int) -> str:
    """What a process runs, shortened, with its number; the number alone if that is unknown."""
    if sys.platform != "linux":
        shown = _ps("command=", pid)
    else:
        shown = " ".join(_read(pid, "cmdline").decode("utf-8", "replace").split("\0")).strip()
    shown = strip_prelude(shown)
    return f"{shown[:_MAX_COMMAND_CHARS]} (pid {pid})" if shown else f"pid {pid}"


def find_processes(traces: ProcessTraces) -> list[Process]:
    """The running processes of a command."""
    if not traces.started:
        return []
    if sys.platform != "linux":
        if start_time(traces.group) not in (traces.started, ""):
            return []
        asked = [_PS, "-ax", "-o", "pid=,pgid=,stat="]
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        rows = [line.split() for line in listed.splitlines()]
        pids = [int(pid) for pid, group, stat in rows if int(group) == traces.group and not stat.startswith("Z")]
        return [Process(pid, started) for pid in pids if (started := start_time(pid))]
    return _find_by_traces(traces)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Signal exactly this process; nothing happens if it is gone or may not be signalled."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform != "linux":
            if start_time(process.pid) == process.started:
                os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            # With the handle open, the number cannot become that of another process unnoticed.
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


class ResourceUsage(NamedTuple):
    """What running processes use together."""

    processes: int
    memory: int
    """Bytes that are theirs alone; after a fork, those that both still share count for each."""


def resource_usage(processes: Sequence[Process]) -> ResourceUsage:
    """What these processes use; known on Linux alone."""
    page = os.sysconf("SC_PAGE_SIZE")
    sizes = [_read(process.pid, "statm").split() for process in processes]
    return ResourceUsage(len(processes), page * sum(int(size[1]) - int(size[2]) for size in sizes if size))


def is_namespace_init(pid: int) -> bool:
    """Whether it is the first process of a pid namespace, or the shell that waits in there.

    Neither is part of what the command started. Numbers are not reused while the namespace exists.
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


def _find_by_traces(traces: ProcessTraces) -> list[Process]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names alone are cheaper
    table = {pid: stat for pid in pids if (stat := _stat(pid)) is not None}
    leader = table.get(traces.group)
    # The number may belong to another process by now, but not while any process of the group runs.
    is_same = leader is None or str(leader.started) == traces.started
    groups = {traces.group} if is_same else set()
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


def _carries(pid: int, mark: str) -> bool:
    name = f"{CALL_MARK}=".encode()
    return bool(mark) and any(
        mark.encode() in variable.removeprefix(name).split(b",")
        for variable in _read(pid, "environ").split(b"\0")
        if variable.startswith(name)
    )


def _writes(pid: int, stat: _Stat, spool: str) -> bool:
    """Whether it has the spool open for writing; what only reads, such as `tail -f`, is not part of the command."""
    # A child that is just being started shares all open files until its program is loaded, and is not a daemon.
    if not spool or stat.parent == os.getpid() or stat.session == os.getsid(0):
        return False
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names alone are cheaper
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") == spool:  # noqa: PTH115 - the kernel's text, not a path
                    flags = _read(pid, f"fdinfo/{number}").partition(b"flags:")[2].split()
                    if flags and int(flags[0], 8) & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


def _stat(pid: int) -> _Stat | None:
    # The second field is the program's name in parentheses, which may contain blanks and parentheses.
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
    asked = subprocess.run([_PS, "-o", wanted, "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


_GATE = 'IFS= read -r go || exit 125; exec "$@" </dev/null'
"""The shell waits for a line on its input. If the agent dies first, the input ends and nothing is run."""
_GATE_IN_NAMESPACE = (
    "exec {kept}>&1 >/dev/null 2>&1; trap : TERM; IFS= read -r go || exit 125; echo begun >&0; "
    '(exec "$@" </dev/null >&{kept} 2>&1 {kept}>&-); code=$?; echo "$code" >&0; IFS= read -r go; exit "$code"'
)
"""The same in a pid namespace, where all processes end with the first one.

So the shell stays: on its input, a socket, it reports that the command began and how it ended, and keeps the
namespace until the agent has looked at it. Its own messages are discarded, as the output belongs to the command.
"""
_ON_EXIT = '{ builtin printf "E%s|%s|%s|" "$?" "${PIPESTATUS[*]}" "${!:-}"; builtin pwd -P; } 2>/dev/null >&REPORT'
_ON_FAILURE = (
    'case $((_failures=${_failures:-0}+1)) in [1-9]) { builtin printf "F%s|%s\\0%.0s" "${PIPESTATUS[*]}" '
    '"${BASH_COMMAND:0:200}" "$_"; } 2>/dev/null >&REPORT;; esac'
)
"""Ends with an argument that is not printed, so that `$_` stays what it was for the command."""
_REPORT_STATUS = '{ builtin printf "F%s|\\0%.0s" "${PIPESTATUS[*]}" "$_"; } 2>/dev/null >&REPORT'
_BEFORE_COMMAND = (
    "case $((_commands=${_commands:-0}+1)):${PIPESTATUS[*]} in [1-9]???:*) trap - DEBUG;; *:0) ;; "
    f"*:*[1-9]*[!0-9]*) {_REPORT_STATUS};; *) case $BASH_COMMAND in true|:) {_REPORT_STATUS};; esac;; esac"
)
"""Reports how the members of the previous pipeline ended, and failures before `|| true`.

It takes ten times as long as a simple command, so it removes itself after 1,000 commands.
"""
_PRELUDES = (
    f"trap '{_ON_EXIT}' EXIT; ",
    f"set -E; trap '{_ON_FAILURE}' ERR; ",
    f"set -T; trap '{_BEFORE_COMMAND}' DEBUG; ",
)
_PRELUDE = re.compile(
    "|".join(
        re.escape(text).replace("REPORT", r"\d+")
        for text in (*_PRELUDES, *(f"{body}\n" for body in (_ON_EXIT, _ON_FAILURE, _BEFORE_COMMAND)))
    )
)
_SETS_TRAPS = re.compile(r"\b(?:trap|shopt|xtrace|verbose|errtrace|functrace)\b|\bset\s+[-+]\w*[xvET]")
"""Where a command has traps of its own, or is traced, failures before its end are not looked for."""


def shell_prelude(command: str, report: int) -> str:
    """What precedes a command so that bash reports what failed in it, and where and how it exits.

    The report: `F` and the exit codes of a failed command or pipeline, `|`, its text if known, NUL; and at the
    end `E`, the exit code, `|`, the exit codes of the last pipeline, `|`, the newest background process, `|`, the
    folder. Traps of bash 3.2, that of macOS, would change `PIPESTATUS` for the command; it reports the end alone.
    """
    only_end = sys.platform != "linux" or _SETS_TRAPS.search(command)
    count = 1 if only_end else 3 if "|" in command else 2
    return "".join(_PRELUDES[:count]).replace("REPORT", str(report))


def strip_prelude(text: str) -> str:
    """A text without what preceded a command, which the shell quotes in syntax errors and `ps` prints."""
    return _PRELUDE.sub("", text) if "PIPESTATUS" in text else text


_TERM_GRACE_S = 2.0
_POLL_S = 0.01
"""How often the exit is looked for if the kernel does not report it."""
_LINGER_S = 0.2
"""Time for processes that end on their own right after the command, such as the reader of its output."""
_LEFTOVER_GRACE_S = 1.0
_KILL_ROUNDS = 5
"""A process may fork while the others are being listed; after a few rounds nothing new can be left."""


class ChildProcess:
    """One command. Create it, `release` it, wait for its exit, then `kill_all`, whatever happened in between.

    Args:
        arguments: the command.
        cwd: where it starts.
        environment: all of its variables.
        output: receives its stdout and stderr.
        report: a further descriptor that it gets.
        mark: what its processes carry, see `CALL_MARK`.
        namespace: the words that start a program in a pid namespace; empty for a command without one.
        descriptors: what those words, or the first of the arguments, read.
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
        namespace: Sequence[str] = (),
        descriptors: Sequence[int] = (),
    ) -> None:
        self._namespace = tuple(namespace)
        self._gate, gate = socket.socketpair()
        self._reported = b""
        script = _GATE
        if namespace:
            # Shells know descriptors of one digit only.
            kept = next(number for number in range(3, 10) if number not in (report, output))
            script = _GATE_IN_NAMESPACE.format(kept=kept)
        try:
            self._process = subprocess.Popen(
                [*namespace, "/bin/sh", "-c", script, "gate", *arguments],
                stdin=gate.fileno(),
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
                # The spool once more, to identify a daemon, which redirects its three streams.
                pass_fds=(report, output, *descriptors),
            )
        except BaseException:
            self._gate.close()
            raise
        finally:
            gate.close()
        self._gate.settimeout(0)
        group = self._process.pid
        spool = os.readlink(f"/proc/self/fd/{output}") if sys.platform == "linux" else ""  # noqa: PTH115 - kernel's text
        self.traces = ProcessTraces(group, start_time(group), mark, spool)
        """What identifies its processes; the command leads its own session, so it is its own group."""
        self._is_released = False
        self._is_over = False
        self._exit = os.pidfd_open(self._process.pid) if sys.platform == "linux" else None

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the signal; known after `kill_all`. In a namespace a signal is 128 and its number."""
        return self._process.returncode if self._code is None else self._code

    @property
    def is_sandboxed(self) -> bool:
        """Whether it runs in a pid namespace."""
        return bool(self._namespace)

    @property
    def has_started(self) -> bool:
        """Whether the command itself was started, and not only its sandbox; known when it has ended."""
        return not self._namespace or bool(self._reported)

    @property
    def _code(self) -> int | None:
        """The exit code that the shell in the namespace reported."""
        _, *reported = self._reported.split(b"\n")
        return int(reported[0]) if len(reported) > 1 else None

    def release(self) -> None:
        """Let the command run."""
        self._is_released = True
        # A broken pipe means that it was killed from outside while it waited, which its exit will show.
        with contextlib.suppress(BrokenPipeError):
            self._gate.send(b"go\n")
        if not self._namespace:
            self._gate.close()

    def has_exited(self) -> bool:
        """Whether the command's first process has exited. It is not reaped, so that its group cannot be reused."""
        if self._namespace:
            # The shell in the namespace reports the end of the command.
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self._reported += self._gate.recv(64)
            if self._code is not None:
                return True
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    async def wait(self, seconds: float) -> bool:
        """Wait at most this long for the first process to exit; returns whether it has."""
        if self.has_exited():
            return True
        if self._exit is None:
            await asyncio.sleep(min(seconds, _POLL_S))
            return self.has_exited()
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        handles = (self._exit, self._gate.fileno()) if self._namespace else (self._exit,)
        for handle in handles:
            loop.add_reader(handle, readable.set)
        try:
            async with asyncio.timeout(seconds):
                await readable.wait()
        except TimeoutError:
            return False
        finally:
            for handle in handles:
                loop.remove_reader(handle)
        return self.has_exited()

    def usage(self) -> ResourceUsage:
        """What the command and all that it started use now."""
        first = [] if self._namespace else [Process(self.traces.group, self.traces.started)]
        return resource_usage([*first, *self._leftovers()])

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little; a second cancellation ends the waiting."""
        if not self._namespace:
            self._signal(signal.SIGTERM)
        elif not self._is_released:
            return  # Nothing runs in the namespace yet; its own processes would end at once if they were asked to.
        for process in self._leftovers():
            send_signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        try:
            while time.monotonic() < deadline and not await self.wait(deadline - time.monotonic()):
                continue
        except asyncio.CancelledError:
            return

    async def end_leftovers(self) -> tuple[str, ...]:
        """After its first process has exited, ask what it left running to end; returns what that was, in words."""
        if await self._are_gone(_LINGER_S):
            return ()
        left = self._leftovers()
        named = tuple(command_line(process.pid) for process in left)
        for process in left:
            send_signal(process, signal.SIGTERM)
        await self._are_gone(_LEFTOVER_GRACE_S)
        return named

    def kill_all(self) -> None:
        """Kill what is left of it and reap the command. Safe to call at any time, and twice."""
        if self._is_over:
            return
        self._is_over = True
        keepers: list[Process] = []
        if self._namespace:
            keepers = [process for process in find_processes(self.traces) if is_namespace_init(process.pid)]
        self._signal(signal.SIGKILL)
        for _ in range(_KILL_ROUNDS):
            left = self._leftovers()
            if not left:
                break
            for process in left:
                send_signal(process, signal.SIGKILL)
        self._process.wait()
        # The first process of a namespace is gone only after all others.
        deadline = time.monotonic() + _LEFTOVER_GRACE_S
        while any(map(is_alive, keepers)) and time.monotonic() < deadline:
            time.sleep(_POLL_S / 10)
        self._close()

    def detach(self) -> None:
        """Stop watching it and let it run; it continues without this process."""
        self._is_over = True
        # Python would warn about a process that nobody waited for.
        self._process.returncode = self._process.poll() or 0
        self._close()

    def _close(self) -> None:
        self._gate.close()
        if self._exit is not None:
            os.close(self._exit)

    def _leftovers(self) -> list[Process]:
        """What runs besides the first process, which is reaped on its own, and what keeps the namespace."""
        left = [process for process in find_processes(self.traces) if process.pid != self.traces.group]
        return [process for process in left if not is_namespace_init(process.pid)] if self._namespace else left

    async def _are_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._leftovers():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            # The group is gone, or (macOS) contains only processes that have exited already.
            return
