"""A background command that an earlier process of ours started: nobody's child, and known by its traces alone."""

import asyncio
import signal
import time

from tools.shell_ops.processes import Process, Traces, belonging, command_line, is_alive, keeps_namespace, send

__all__ = ["Adopted"]

_GRACE_S = 2.0
_LINGER_S = 0.2
_LOOK_S = 0.02
_ROUNDS = 5


class Adopted:
    """The body of a command that goes on without the process that started it."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._first = Process(traces.group, traces.started)

    @property
    def traces(self) -> Traces:
        """What its processes are known by."""
        return self._traces

    async def wait(self, seconds: float) -> bool:
        """Wait this long at most for its first process to end; whether it has."""
        if is_alive(self._first):
            await asyncio.sleep(seconds)
        return not is_alive(self._first)

    async def terminate(self) -> None:
        """Ask all of it to end, and wait a little."""
        await self._ask(self._asked())

    async def end_left(self) -> tuple[str, ...]:
        """Ask what the first process left running to end; in words, what that was."""
        await self._are_gone(_LINGER_S)
        left = belonging(self._traces)
        named = tuple(command_line(process.pid) for process in left)
        await self._ask(left)
        return named

    def end_all(self) -> None:
        """Kill what is left."""
        for _ in range(_ROUNDS):
            left = belonging(self._traces)
            if not left:
                return
            for process in left:
                send(process, signal.SIGKILL)
            time.sleep(_LOOK_S)

    def let_be(self) -> None:
        """Nothing is held of it."""

    def _asked(self) -> list[Process]:
        """All but the walls themselves: they would fall at once, and with them what was only asked to end."""
        found = belonging(self._traces)
        within = [process for process in found if keeps_namespace(process.pid)]
        return [one for one in found if one not in within and one != self._first] if within else found

    async def _ask(self, processes: list[Process]) -> None:
        for process in processes:
            send(process, signal.SIGTERM)
        if processes:
            await self._are_gone(_GRACE_S)

    async def _are_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while belonging(self._traces) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(_LOOK_S)
