"""The bash_output tool: reads what a background shell has written since it was last read."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import BaseTool, ToolContext, ToolKind, ToolResult, ToolRiskLevel
from tools.running import run_in_thread
from tools.shell_ops.background import BackgroundShells, NewOutput, background_unavailable, unknown_shell
from tools.shell_ops.output import input_hint, open_existing_spool, read_output_range
from tools.shell_ops.shell_command import strip_exit_trap

__all__ = ["BashOutputArgs", "BashOutputTool"]

_WAIT_S = 2.0
"""How long it waits for new output, so that a model that polls does so less often."""
_POLL_S = 0.1


class BashOutputArgs(BaseModel):
    """Which one."""

    id: str = Field(description="the shell's id, as bash told it")


class BashOutputTool(BaseTool):
    """Reads the new output of a background shell."""

    name = "bash_output"
    description = (
        "Read what a background shell has written since you last read it, and whether it still runs. Where nothing "
        "is new it waits two seconds: do something else meanwhile rather than asking again at once."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "shell"
    args_schema = BashOutputArgs
    max_result_chars = 40_000
    """Its output is already cut to the context's limit; the line on its state is added."""
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - for any shell
        """No: what one call has read is not new for the next."""
        return False

    def signature(self, args: Mapping[str, Any]) -> str:
        """The id."""
        return str(args["id"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        """One line."""
        return f"read background shell {args['id']}"

    async def execute(self, *, id: str, context: ToolContext | None = None) -> ToolResult:  # noqa: A002 - the argument's fixed name
        """The new output, shortened as that of any command, and the state."""
        if self.shells is None:
            return background_unavailable()
        here = self.context_or_default(context)
        output = await _new_output(self.shells, here, id)
        if output is None:
            return unknown_shell(id, await self.shells.all(here))
        return await run_in_thread(_format_output, output, here)


async def _new_output(shells: BackgroundShells, context: ToolContext, shell_id: str) -> NewOutput | None:
    for _ in range(round(_WAIT_S / _POLL_S)):
        view = next((view for view in await shells.all(context) if view.shell_id == shell_id), None)
        if view is None or view.unread_bytes or not view.is_running:
            break
        await asyncio.sleep(_POLL_S)
    return await shells.read(context, shell_id)


def _format_output(output: NewOutput, context: ToolContext) -> ToolResult:
    view = output.view
    metadata: dict[str, Any] = {"shell": view.shell_id, "is_running": view.is_running, "exit_code": view.code}
    try:
        with open_existing_spool(output.spool) as spool:
            text, noted = read_output_range(spool, context, output.start, output.end)
    except FileNotFoundError:
        text, noted = "(its output was removed)", {}
    text = strip_exit_trap(text)
    shown = text.rstrip("\n") or ("(no new output)" if output.start or view.is_running else "(no output)")
    parts = (shown, f"[{view.state}]", input_hint(text, view.code or 0))
    return ToolResult(
        "\n".join(part for part in parts if part),
        display=f"{view.shell_id}: {view.state}",
        metadata={**metadata, **noted},
    )
