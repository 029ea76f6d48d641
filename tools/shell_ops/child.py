"""A command in a session of its own: held back until it is let go, watched, and ended with everything it started.

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

from tools.shell_ops.processes import Process, Traces, belonging, command_line, send, start_time

__all__ = ["Child"]

_GATE = 'IFS= read -r go || exit 125; exec "$@" </dev/null'
"""The shell waits at its input for a line. When the agent dies first, the input ends and nothing is run."""
_TERM_GRACE_S = 2.0
_LOOK_S = 0.01
"""How often the exit is looked for where the kernel does not tell it."""
_LINGER_S = 0.2
"""What ends by itself right after the command, the reader of its output for one, is let do so."""
_LEFT_GRACE_S = 1.0
_ROUNDS = 5
"""A process may fork while the others are being read; after a few rounds nothing new can be left."""


class Child:
    """One command. Create it, `release` it, wait for `ended`, then `end_all`, whatever happened in between."""

    def __init__(
        self,
        arguments: list[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        output: int,
        report: int,
        mark: str = "",
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
                # The spool once more, for it to be known by: a daemon redirects its three streams.
                pass_fds=(report, output),
            )
        except BaseException:
            os.close(self._gate)
            raise
        finally:
            os.close(gate)
        group = self._process.pid
        spool = os.readlink(f"/proc/self/fd/{output}") if sys.platform == "linux" else ""  # noqa: PTH115 - kernel's text
        self._traces = Traces(group, start_time(group), mark, spool)
        self._is_gate_closed = False
        self._is_over = False
        self._exit = os.pidfd_open(self._process.pid) if sys.platform == "linux" else None

    @property
    def traces(self) -> Traces:
        """What its processes are known by; the command leads its own session, so it is its own group."""
        return self._traces

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the signal; known after `end_all`."""
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
        """Ask all of it to end, and wait a little; a second cancellation cuts the waiting short."""
        self._signal(signal.SIGTERM)
        for process in self._left():
            send(process, signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        try:
            while time.monotonic() < deadline and not await self.wait(_TERM_GRACE_S):
                continue
        except asyncio.CancelledError:
            return

    async def end_left(self) -> tuple[str, ...]:
        """After its first process has exited: ask what it left running to end; in words, what that was."""
        if await self._are_gone(_LINGER_S):
            return ()
        left = self._left()
        named = tuple(command_line(process.pid) for process in left)
        for process in left:
            send(process, signal.SIGTERM)
        await self._are_gone(_LEFT_GRACE_S)
        return named

    def end_all(self) -> None:
        """Kill what is left of it and reap the command. Safe to call at any time, and twice."""
        self._close_gate()
        if self._is_over:
            return
        self._is_over = True
        self._signal(signal.SIGKILL)
        for _ in range(_ROUNDS):
            left = self._left()
            if not left:
                break
            for process in left:
                send(process, signal.SIGKILL)
        self._process.wait()
        if self._exit is not None:
            os.close(self._exit)

    def _left(self) -> list[Process]:
        """What lives besides the command's first process, which is reaped on its own."""
        return [process for process in belonging(self._traces) if process.pid != self._traces.group]

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

    def _close_gate(self) -> None:
        if not self._is_gate_closed:
            self._is_gate_closed = True
            os.close(self._gate)
