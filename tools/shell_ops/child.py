"""A command in a session of its own: held back until it is let go, watched, and ended with everything in its group.

Nothing is piped through this process: the command writes into a file, so nothing is lost when the agent dies.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Child", "start_time"]

_GATE = 'IFS= read -r go || exit 125; exec "$@" </dev/null'
"""The shell waits at its input for a line. When the agent dies first, the input ends and nothing is run."""
_TERM_GRACE_S = 2.0
_LOOK_S = 0.01
"""How often the exit is looked for where the kernel does not tell it."""
_SESSION_ROUNDS = 5
"""A process may fork while the session is being read; after a few rounds nothing new can be left."""


def start_time(pid: int) -> str:
    """When a process started, as the kernel tells it; empty when there is no such process or no way to know."""
    if sys.platform != "linux":
        asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return asked.stdout.strip()
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return line.rpartition(")")[2].split()[19]


class Child:
    """One command. Create it, `release` it, wait for `ended`, then `end_group`, whatever happened in between."""

    def __init__(
        self, arguments: list[str], *, cwd: Path, environment: Mapping[str, str], output: int, report: int
    ) -> None:
        gate, self._gate = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GATE, "gate", *arguments],
                stdin=gate,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
                pass_fds=(report,),
            )
        except BaseException:
            os.close(self._gate)
            raise
        finally:
            os.close(gate)
        self._is_gate_closed = False
        self._is_over = False
        self._exit = os.pidfd_open(self._process.pid) if sys.platform == "linux" else None

    @property
    def group(self) -> int:
        """The process group: the command leads its own session, so it is its own group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the signal; known after `end_group`."""
        return self._process.returncode

    def release(self) -> None:
        """Let the command run."""
        # A pipe that is broken means: killed from outside while it waited. Its exit will say so.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._gate, b"go\n")
        self._close_gate()

    def ended(self) -> bool:
        """Whether the command's first process has exited. It stays unreaped, so that its group cannot be reused."""
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
        exited = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._exit, exited.set)
        try:
            async with asyncio.timeout(seconds):
                await exited.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._exit)
        return True

    async def terminate(self) -> None:
        """Ask the whole group to end, and wait a little; a second cancellation cuts the waiting short."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        try:
            while time.monotonic() < deadline and not await self.wait(_TERM_GRACE_S):
                continue
        except asyncio.CancelledError:
            return

    def end_group(self) -> None:
        """Kill what is left of the session and reap the command. Safe to call at any time, and twice."""
        self._close_gate()
        if self._is_over:
            return
        self._is_over = True
        self._signal(signal.SIGKILL)
        _kill_session(self._process.pid)
        self._process.wait()
        if self._exit is not None:
            os.close(self._exit)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            # The group is gone, or (macOS) holds only processes that have exited already.
            return

    def _close_gate(self) -> None:
        if not self._is_gate_closed:
            self._is_gate_closed = True
            os.close(self._gate)


def _kill_session(session: int) -> None:
    # Programs such as `timeout` move into a group of their own and would outlive the kill of the group.
    for _ in range(_SESSION_ROUNDS):
        members = [pid for pid in _processes() if _session_of(pid) == session and pid != session]
        if not members:
            return
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if sys.platform == "linux" else []  # noqa: PTH208 - names alone are cheaper


def _session_of(pid: int) -> int | None:
    """The session of a living process; None for one that has exited."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, _, _, session = line.rpartition(")")[2].split()[:4]
    return None if state in "ZX" else int(session)
