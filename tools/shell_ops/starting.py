"""How a command is started: its shell, its variables, the walls around it; and what its end says of them."""

import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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

__all__ = ["Run", "exit_code", "not_begun", "not_begun_told", "prologue", "spawn", "walls", "without_prologue"]

_SHELL = "/bin/bash"
_SIGNALLED = 128
_OWN_END = re.compile(r"\b(?:exec|trap)\b")
"""What in a command may have the shell end without telling where."""
_TROUBLE_BYTES = 1_000
_PROLOGUE = re.compile(r"trap '(?:pwd -P|echo \$\?) >&\d+' EXIT; ")


@dataclass(frozen=True)
class Run:
    """A command with its place, ready to be started."""

    command: str
    timeout: float
    start: Path
    context: ToolContext
    shell: tuple[str, ...] = ()
    """Another shell than bash, with what goes before the command; it tells nothing at its end."""
    tells: Literal["folder", "code"] = "folder"
    """What its shell writes down when it ends: where it stands, or its exit code, where nobody may be there to
    see that."""


@asynccontextmanager
async def walls(
    context: ToolContext, lasts: Literal["call", "session", "always"] = "call"
) -> AsyncIterator[Confined | None]:
    """What a command is confined with; None where there is nothing to do it with, or nobody wants it.

    Raises:
        NoSandbox: there is none, and nothing may run without.
    """
    if context.sandbox is None:
        yield None
        return
    name = context.thread_id or str(context.workspace)
    confining = context.sandbox.confined(name, is_lasting=lasts != "call", outlives=lasts == "always")
    confined = await in_thread(confining.__enter__)
    try:
        yield confined
    finally:
        await in_thread(confining.__exit__, None, None, None)


def spawn(run: Run, spool: Spool, report: int, confined: Confined | None) -> Child:
    """Start the shell, held back; `report` takes what it tells at its end.

    Raises:
        OSError: the system refuses.
    """
    shell = [*run.shell, run.command] if run.shell else _bash(run, report)
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


def _bash(run: Run, report: int) -> list[str]:
    # The approved text follows on the same line, so that the shell's messages count lines as the model does.
    return [_SHELL, "--noprofile", "--norc", "-c", f"{prologue(report, run.tells)}{run.command}", "bash"]


def prologue(report: int, tells: Literal["folder", "code"] = "folder") -> str:
    """What is put before a command so that its shell tells where it ends, or how."""
    return f"trap '{'pwd -P' if tells == 'folder' else 'echo $?'} >&{report}' EXIT; "


def without_prologue(text: str) -> str:
    """What a shell said, without what was put before its command."""
    return _PROLOGUE.sub("", text)


def not_begun(spool: Spool) -> ToolResult:
    """What to tell of a command whose walls could not be put up."""
    return failure(ToolErrorType.EXECUTION, not_begun_told(clean(spool.read(0, _TROUBLE_BYTES)).strip()))


def not_begun_told(trouble: str) -> str:
    """The same in words."""
    told = f"The sandbox could not be set up, and the command did not run: {trouble or 'it said nothing'}"
    return f"{told}. The user can look with `graph-agent doctor`."


def exit_code(child: Child, run: Run, *, has_told: bool) -> int:
    """Exit code, or minus the signal. From within a sandbox both come as one number.

    A shell that exits tells what it is to tell before, unless the command took that away from it.
    """
    code = child.returncode or 0
    tells_nothing = bool(run.shell) or _OWN_END.search(run.command) is not None
    is_signal = child.has_walls and code > _SIGNALLED and not has_told and not tells_nothing
    return _SIGNALLED - code if is_signal else code
