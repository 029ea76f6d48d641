"""Commands that go on in the background, as tools see them: the one port, and what comes and goes through it.

Who keeps them, and for how long, is not decided here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.context import ToolContext
from tools.kinds import ToolErrorType
from tools.result import ToolResult, failure
from tools.sandbox.sandbox import NoSandbox
from tools.shell_ops.starting import Run, not_begun_told

__all__ = ["BackgroundShells", "NoRoom", "Output", "ShellView", "no_shell", "nowhere", "started"]


class NoRoom(Exception):
    """So many run already that no more are started; the message says what to do."""


@dataclass(frozen=True)
class ShellView:
    """One of them, as it is now."""

    shell_id: str
    command: str
    state: str
    """In words: for how long it has been running, or how and when it ended."""
    is_running: bool
    output_bytes: int = 0
    """Written so far."""
    unread_bytes: int = 0
    code: int | None = None
    """Exit code, or minus the signal; None while it runs, and where nobody knows."""
    trouble: str = ""
    """Why the command itself never ran: its sandbox could not be set up."""


@dataclass(frozen=True)
class Output:
    """What one of them has written since it was last read."""

    view: ShellView
    spool: Path
    """Where it stands, `start` to `end`; the file may be gone."""
    start: int
    end: int


class BackgroundShells(Protocol):
    """The background shells of a session. Ids are never given twice; a thread sees its own alone."""

    async def start(self, run: Run) -> ShellView:
        """Start a command; what is needed to find it again is durable before it is let go.

        Raises:
            NoRoom: the thread has as many as it may have.
            NoSandbox: nothing may run without one, and there is none.
            OSError: the system refuses.
        """
        ...

    async def read(self, context: ToolContext, shell_id: str) -> Output | None:
        """What is new, which counts as read from now on; a call that asks again gets the same and what came since.

        None: the thread has no such shell.
        """
        ...

    async def all(self, context: ToolContext) -> list[ShellView]:
        """Those of the thread, in order of their start."""
        ...

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """End one with everything it started; None: the thread has no such shell."""
        ...

    async def find(self, shell_id: str) -> ShellView | None:
        """Look one up, whichever thread it belongs to."""
        ...


async def started(run: Run, shells: BackgroundShells | None) -> ToolResult:
    """The result of a call that starts one."""
    if shells is None:
        return nowhere()
    try:
        view = await shells.start(run)
    except NoRoom as full:
        return failure(ToolErrorType.EXECUTION, str(full))
    except NoSandbox as refusal:
        return failure(ToolErrorType.PERMISSION, f"The command was not run, for want of a sandbox: {refusal}.")
    except OSError as error:
        return failure(ToolErrorType.EXECUTION, f"The command could not be started: {error.strerror or error}.")
    return _told(view)


def _told(view: ShellView) -> ToolResult:
    metadata = {"shell": view.shell_id}
    if view.trouble:
        return failure(ToolErrorType.EXECUTION, not_begun_told(view.trouble), **metadata)
    look = f'bash_output(id="{view.shell_id}") shows what it writes'
    if view.is_running:
        told = f"Started in the background as {view.shell_id}. {look}, bash_kill ends it."
        return ToolResult(told, display=f"{view.shell_id} runs in the background", metadata=metadata)
    told = f"Started in the background as {view.shell_id}, and it has ended already: {view.state}. {look}."
    return ToolResult(told, display=f"{view.shell_id}: {view.state}", metadata=metadata)


def nowhere() -> ToolResult:
    """For tools that nobody gave the port."""
    return failure(ToolErrorType.EXECUTION, "There are no background shells here; run the command without it.")


def no_shell(shell_id: str, known: list[ShellView]) -> ToolResult:
    """For an id that the thread has no shell of."""
    named = ", ".join(view.shell_id for view in known[-10:])
    there = f"it has {named}" if named else "it has none; bash with background=true starts one"
    return failure(ToolErrorType.NOT_FOUND, f"This thread has no background shell {shell_id!r}: {there}.")
