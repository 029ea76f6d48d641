"""The bash_list tool: lists the background shells of a thread."""

from collections.abc import Mapping
from typing import Any

from tools.base import BaseTool, NoArguments, ToolContext, ToolKind, ToolResult, ToolRiskLevel
from tools.shell_ops.background import BackgroundShells, ShellView, background_unavailable

__all__ = ["BashListTool"]

_MAX_SHOWN = 20
_COMMAND_CHARS = 100


class BashListTool(BaseTool):
    """Lists the background shells of a thread."""

    name = "bash_list"
    description = "List the background shells that bash started in this conversation, running or ended."
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "shell"
    args_schema = NoArguments
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - there are no arguments
        """One line."""
        return "list background shells"

    async def execute(self, *, context: ToolContext | None = None) -> ToolResult:
        """One line each, the newest last."""
        if self.shells is None:
            return background_unavailable()
        views = await self.shells.all(self.context_or_default(context))
        running = sum(view.is_running for view in views)
        lines = [_line(view) for view in views[-_MAX_SHOWN:]]
        if len(views) > _MAX_SHOWN:
            lines.insert(0, f"({len(views) - _MAX_SHOWN} older ones, all ended)")
        listed = [{"shell": view.shell_id, "is_running": view.is_running, "state": view.state} for view in views]
        return ToolResult(
            "\n".join(lines) or "There are no background shells.",
            display=f"{running} running, {len(views) - running} ended",
            metadata={"shells": listed[-_MAX_SHOWN:]},
        )


def _line(view: ShellView) -> str:
    first, *more = view.command.strip().split("\n")
    cut = "…" if more or len(first) > _COMMAND_CHARS else ""
    unread = f", {view.unread_bytes} bytes not read yet" if view.unread_bytes else ""
    return f"{view.shell_id}  {view.state}{unread}  $ {first[:_COMMAND_CHARS]}{cut}"
