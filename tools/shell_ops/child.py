"""A command in a session of its own: held back until it is let go, watched, and ended with everything it started.

Nothing is piped through this process: the command writes into a file, so nothing is lost when the agent dies.

In a sandbox with processes of its own all of a command would end with its first process, unseen. So a shell waits
in there with it, tells how it ended, and keeps the rest alive until that was looked at.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.shell_ops.processes import (
    Process,
    Traces,
    belonging,
    command_line,
    is_alive,
    keeps_namespace,
    send,
    start_time,
)

__all__ = ["Child"]

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


class Child:
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
        self._traces = Traces(group, start_time(group), mark, spool)
        self._is_released = False
        self._is_over = False
        self._exit = os.pidfd_open(self._process.pid) if sys.platform == "linux" else None

    @property
    def traces(self) -> Traces:
        """What its processes are known by; the command leads its own session, so it is its own group."""
        return self._traces

    @property
    def returncode(self) -> int | None:
        """Exit code, or minus the signal; known after `end_all`. In a sandbox a signal is 128 and its number."""
        return self._process.returncode if self._code is None else self._code

    @property
    def has_walls(self) -> bool:
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
            send(process, signal.SIGTERM)
        deadline = time.monotonic() + _TERM_GRACE_S
        try:
            while time.monotonic() < deadline and not await self.wait(deadline - time.monotonic()):
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
        if self._is_over:
            return
        self._is_over = True
        kept = (
            [process for process in belonging(self._traces) if keeps_namespace(process.pid)] if self._walls else []
        )
        self._signal(signal.SIGKILL)
        for _ in range(_ROUNDS):
            left = self._left()
            if not left:
                break
            for process in left:
                send(process, signal.SIGKILL)
        self._process.wait()
        _wait_for_end(kept)
        self._gate.close()
        if self._exit is not None:
            os.close(self._exit)

    def let_be(self) -> None:
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
        left = [process for process in belonging(self._traces) if process.pid != self._traces.group]
        return [process for process in left if not keeps_namespace(process.pid)] if self._walls else left

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
