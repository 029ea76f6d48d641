"""Background shells as tools see them, of which there is one: `sh1`, which has ended. Starts nothing."""

from pathlib import Path

from tools.base import ToolContext
from tools.shell_ops.background import NewOutput, ShellView, TooManyShells
from tools.shell_ops.shell_command import ShellCommand

__all__ = ["OneShell"]

_VIEW = ShellView("sh1", "npm test", "exit code 0", is_running=False, output_bytes=3, unread_bytes=3, code=0)


class OneShell:
    """See the module; `spool` is what it wrote."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool

    async def start(self, run: ShellCommand) -> ShellView:
        """Refuse."""
        raise TooManyShells(f"no room for {run.command}")

    async def read(self, context: ToolContext, shell_id: str) -> NewOutput | None:
        """All of it, again and again."""
        return NewOutput(_VIEW, self._spool, 0, 3) if shell_id == "sh1" else None

    async def all(self, context: ToolContext) -> list[ShellView]:
        """The one."""
        return [_VIEW]

    async def end(self, context: ToolContext, shell_id: str) -> ShellView | None:
        """It has ended already."""
        return await self.find(shell_id)

    async def find(self, shell_id: str) -> ShellView | None:
        """The one, by its id."""
        return _VIEW if shell_id == "sh1" else None
