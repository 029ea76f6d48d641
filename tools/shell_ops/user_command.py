"""Runs a command of the user's own, such as a hook, with a text as its input; nothing of it is left running."""

import asyncio
import os
import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from tools.programs import trusted_path
from tools.shell_ops.output import clean_output
from tools.shell_ops.process import CALL_MARK, ChildProcess
from tools.shell_ops.shell_command import child_environment

__all__ = ["KEPT_BYTES", "MAX_OUTPUT_BYTES", "UserCommandResult", "run_user_command"]

_SCRIPT = 'exec /bin/sh -c "$1" <"$2" >"$3"'
_POLL_S = 0.2
MAX_OUTPUT_BYTES = 1024 * 1024
"""A command that writes more is ended."""
KEPT_BYTES = 8 * 1024
"""Of its stderr, and of a stdout that is for the model."""
_DISPLAY_VARIABLES = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY")
"""What programs need to show something to the user; no command of the model gets these."""

_Stop = Literal["", "timeout", "output_limit"]


@dataclass(frozen=True, slots=True)
class UserCommandResult:
    """How it ended."""

    exit_code: int | None
    """Exit code, or minus the signal; None if it was stopped."""
    stderr: str = ""
    """The beginning of its stderr, without control characters."""
    stopped: _Stop = ""
    stdout: str = ""
    """The beginning of its stdout likewise, if it was captured."""


async def run_user_command(
    command: str, text: str, cwd: Path, seconds: float, *, stdout_bytes: int = 0
) -> UserCommandResult:
    """Run it with the text as its input, capture so much of its stdout; a cancellation ends all that it started.

    Raises:
        OSError: the system refuses.
    """
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stderr,
        tempfile.NamedTemporaryFile(prefix="graph-agent-") as stdout,
    ):
        stdin.write(text.encode("utf-8", "replace"))
        stdin.flush()
        stdin.seek(0)
        stopped: _Stop = ""
        mark = secrets.token_hex(16)
        target = stdout.name if stdout_bytes else os.devnull
        child = ChildProcess(
            ["/bin/sh", "-c", _SCRIPT, "hook", command, f"/dev/fd/{stdin.fileno()}", target],
            cwd=cwd,
            environment=_environment(cwd, mark),
            output=stderr.fileno(),
            report=stdin.fileno(),
            mark=mark,
        )
        try:
            child.release()
            deadline = time.monotonic() + seconds
            while not stopped and not await child.wait(max(0.0, min(_POLL_S, deadline - time.monotonic()))):
                if any(os.fstat(file.fileno()).st_size > MAX_OUTPUT_BYTES for file in (stderr, stdout)):
                    stopped = "output_limit"
                elif time.monotonic() >= deadline:
                    stopped = "timeout"
            if stopped:
                await child.terminate()
        except asyncio.CancelledError:
            await child.terminate()
            raise
        finally:
            child.kill_all()
        code = None if stopped else child.returncode
        return UserCommandResult(code, _beginning(stderr, KEPT_BYTES), stopped, _beginning(stdout, stdout_bytes))


def _environment(cwd: Path, mark: str) -> dict[str, str]:
    """As that of a command, but run outside of the sandbox, it finds nothing that a command wrote by its name."""
    display = {name: os.environ[name] for name in _DISPLAY_VARIABLES if name in os.environ}
    marks = ",".join(filter(None, (os.environ.get(CALL_MARK), mark)))
    own = {"PATH": trusted_path(), "PWD": str(cwd), CALL_MARK: marks}
    return {**child_environment(os.environ), **display, **own}


def _beginning(file: IO[bytes], size: int) -> str:
    file.seek(0)
    return clean_output(file.read(size)).strip()
