"""How a command is started: its shell, its variables, the walls around it; and what its end says of them."""

import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.blocking import in_thread
from tools.context import ToolContext
from tools.kinds import ToolErrorType
from tools.result import ToolResult, failure
from tools.sandbox.sandbox import Confined
from tools.shell_ops.child import Child
from tools.shell_ops.environment import child_environment
from tools.shell_ops.output import clean
from tools.shell_ops.processes import MARK
from tools.shell_ops.spool import Spool

__all__ = ["Run", "exit_code", "not_begun", "prologue", "spawn", "walls"]

_SHELL = "/bin/bash"
_SIGNALLED = 128
_OWN_END = re.compile(r"\b(?:exec|trap)\b")
"""What in a command may have the shell end without telling where."""
_TROUBLE_BYTES = 1_000


@dataclass(frozen=True)
class Run:
    """A command with its place, ready to be started."""

    command: str
    timeout: float
    start: Path
    context: ToolContext


@asynccontextmanager
async def walls(context: ToolContext) -> AsyncIterator[Confined | None]:
    """What a command is confined with; None where there is nothing to do it with, or nobody wants it.

    Raises:
        NoSandbox: there is none, and nothing may run without.
    """
    if context.sandbox is None:
        yield None
        return
    confining = context.sandbox.confined(context.thread_id or str(context.workspace))
    confined = await in_thread(confining.__enter__)
    try:
        yield confined
    finally:
        await in_thread(confining.__exit__, None, None, None)


def spawn(run: Run, spool: Spool, report: int, confined: Confined | None) -> Child:
    """Start the shell, held back; `report` takes the folder in which it ends.

    Raises:
        OSError: the system refuses.
    """
    # The approved text follows on the same line, so that the shell's messages count lines as the model does.
    shell = [_SHELL, "--noprofile", "--norc", "-c", f"{prologue(report)}{run.command}", "bash"]
    mark = run.context.mark or secrets.token_hex(16)
    marks = ",".join(filter(None, (os.environ.get(MARK), mark)))
    environment = {**child_environment(os.environ), "PWD": str(run.start), MARK: marks}
    prefix = confined.prefix if confined else ()
    around = prefix if confined and confined.has_own_processes else ()
    return Child(
        shell if around else [*prefix, *shell],
        cwd=run.start,
        environment={**environment, **confined.environment} if confined else environment,
        output=spool.sink,
        report=report,
        mark=mark,
        walls=around,
    )


def prologue(report: int) -> str:
    """What is put before a command so that its shell tells where it ends."""
    return f"trap 'pwd -P >&{report}' EXIT; "


def not_begun(spool: Spool) -> ToolResult:
    """What to tell of a command whose walls could not be put up."""
    trouble = clean(spool.read(0, _TROUBLE_BYTES)).strip() or "it said nothing"
    told = f"The sandbox could not be set up, and the command did not run: {trouble}"
    return failure(ToolErrorType.EXECUTION, f"{told}. The user can look with `graph-agent doctor`.")


def exit_code(child: Child, command: str, *, told_folder: bool) -> int:
    """Exit code, or minus the signal. From within a sandbox both come as one number.

    A shell that exits tells its folder before, unless the command took that away from it.
    """
    code = child.returncode or 0
    is_signal = child.has_walls and code > _SIGNALLED and not told_folder and not _OWN_END.search(command)
    return _SIGNALLED - code if is_signal else code
