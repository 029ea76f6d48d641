"""The bash_kill tool: ends a background shell with everything it started."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    InterruptedCall,
    Preview,
    Reconciliation,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
)
from tools.shell_ops.background import BackgroundShells, background_unavailable, unknown_shell

__all__ = ["BashKillArgs", "BashKillTool"]


class BashKillArgs(BaseModel):
    """Which one."""

    id: str = Field(description="the shell's id, as bash told it")


class BashKillTool(BaseTool):
    """Ends a background shell."""

    name = "bash_kill"
    description = "End a background shell that bash started, with every process it started."
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.EXECUTE
    category = "shell"
    args_schema = BashKillArgs
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def signature(self, args: Mapping[str, Any]) -> str:
        """The id."""
        return str(args["id"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        """One line."""
        return f"end background shell {args['id']}"

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview:  # noqa: ARG002 - shells of any thread
        """What runs there."""
        view = await self.shells.find(str(args["id"])) if self.shells is not None else None
        return Preview("text", f"$ {view.command}\n[{view.state}]" if view else self.display_call(args))

    async def execute(self, *, id: str, context: ToolContext | None = None) -> ToolResult:  # noqa: A002 - the argument's fixed name
        """Send SIGTERM to all of it, then SIGKILL to what is left; one that has ended is left alone."""
        if self.shells is None:
            return background_unavailable()
        here = self.context_or_default(context)
        view = await self.shells.end(here, id)
        if view is None:
            return unknown_shell(id, await self.shells.all(here))
        unread = f" bash_output shows the {view.unread_bytes} bytes not read yet." if view.unread_bytes else ""
        return ToolResult(
            f"{view.shell_id}: {view.state}.{unread}",
            display=f"{view.shell_id}: {view.state}",
            metadata={"shell": view.shell_id, "state": view.state},
        )

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Whether it still runs."""
        shell_id = str(call.arguments.get("id", ""))
        view = await self.shells.find(shell_id) if self.shells is not None else None
        if view is None:
            return Reconciliation("unknown", f"There is no background shell {shell_id!r} here.")
        if view.is_running:
            return Reconciliation("not_applied", f"{shell_id} is still running.")
        return Reconciliation("already_applied", f"{shell_id} has ended: {view.state}.")
