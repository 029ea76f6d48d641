"""Runs a command of the user's own on a text, to its end or its limit, with nothing of it left running.

Knows nothing of what the command is for. What it says on stderr is kept, the rest only where it is asked for.
"""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from tools.shell_ops.output import clean_output
from tools.shell_ops.process import CALL_MARK, ChildProcess
from tools.shell_ops.start import child_environment

__all__ = ["UserCommandResult", "run_user_command"]

_SHELL = "/bin/sh"
_ON_INPUT = 'exec /bin/sh -c "$1" <"$2" >"$3"'
_LOOK_S = 0.2
_MOST_BYTES = 1024 * 1024
_TOLD_BYTES = 8 * 1024
_SCREEN = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY")
"""What programs need that show the user something; no command of the model gets these."""


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    """How it ended."""

    exit_code: int | None
    """Exit code, or minus the signal; None of one that was stopped."""
    stderr: str = ""
    """What it wrote to stderr, from the beginning, without control characters."""
    stopped: Literal["", "timeout", "output_limit"] = ""
    stdout: str = ""
    """What it wrote to stdout, likewise; empty where nobody asked for it."""


async def run_user_command(
    command: str, text: str, cwd: Path, seconds: float, *, capture_stdout: bool = False
) -> UserCommandResult:
    """Run it with the text on its input; a cancellation ends it with all it started.

    With `capture_stdout` its stdout is kept as well.

    Raises:
        OSError: the system refuses.
    """
    with (
        tempfile.TemporaryFile() as fed,
        tempfile.TemporaryFile() as said,
        tempfile.NamedTemporaryFile(prefix="graph-agent-") as written,
    ):
        fed.write(text.encode("utf-8", "replace"))
        fed.flush()
        fed.seek(0)
        heard = written.name if capture_stdout else os.devnull
        child = _child((command, f"/dev/fd/{fed.fileno()}", heard), cwd, fed.fileno(), said.fileno())
        try:
            child.release()
            stopped = await _watch(child, (said.fileno(), written.fileno()), seconds)
            if stopped:
                await child.terminate()
        except asyncio.CancelledError:
            await child.terminate()
            raise
        finally:
            child.kill_all()
        return UserCommandResult(
            None if stopped else child.returncode, _beginning(said), stopped, _beginning(written)
        )


def _beginning(file: IO[bytes]) -> str:
    file.seek(0)
    return clean_output(file.read(_TOLD_BYTES)).strip()


def _child(words: Sequence[str], cwd: Path, fed: int, said: int) -> ChildProcess:
    mark = secrets.token_hex(16)
    marks = ",".join(filter(None, (os.environ.get(CALL_MARK), mark)))
    screen = {name: os.environ[name] for name in _SCREEN if name in os.environ}
    return ChildProcess(
        [_SHELL, "-c", _ON_INPUT, "hook", *words],
        cwd=cwd,
        environment={**child_environment(os.environ), **screen, "PWD": str(cwd), CALL_MARK: marks},
        output=said,
        report=fed,
        mark=mark,
    )


async def _watch(
    child: ChildProcess, outputs: Sequence[int], seconds: float
) -> Literal["", "timeout", "output_limit"]:
    deadline = time.monotonic() + seconds
    while not await child.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic()))):
        if any(os.fstat(output).st_size > _MOST_BYTES for output in outputs):
            return "output_limit"
        if time.monotonic() >= deadline:
            return "timeout"
    return ""
