"""The tools for background shells: bash_output reads one, bash_list lists them, bash_kill ends one."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    InterruptedCall,
    NoArguments,
    Preview,
    Reconciliation,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.running import run_in_thread
from tools.shell_ops.background import BackgroundShells, NewOutput, ShellView, background_unavailable
from tools.shell_ops.output import input_hint, open_existing_spool, read_output_range
from tools.text import format_count

__all__ = ["BashKillTool", "BashListTool", "BashOutputTool", "ShellArgs"]

_WAIT_S = 2.0
"""How long bash_output waits for new output, so that a model that polls does so less often."""
_POLL_S = 0.1
_MAX_LISTED = 20
_COMMAND_CHARS = 100


class ShellArgs(BaseModel):
    id: str = Field(description="the shell's id, as bash told it")


class BashOutputTool(BaseTool):
    """Reads the new output of a background shell."""

    name = "bash_output"
    description = ToolDescription(
        short="Read what a background shell has written since you last read it, and whether it still runs.",
        long="Long output is shortened as that of any command.",
        usage_notes=("Where nothing is new it waits two seconds.",),
        examples=(ToolExample({"id": "sh1"}),),
        important=("Do something else meanwhile rather than asking again at once.",),
    )
    tags = ("shell", "background", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "shell"
    args_schema = ShellArgs
    max_result_chars = 40_000
    """Its output is already cut to the context's limit; the line on its state is added."""
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - for any shell
        """No: what one call has read is not new for the next."""
        return False

    def signature(self, args: Mapping[str, Any]) -> str:
        return str(args["id"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"read background shell {args['id']}"

    async def execute(self, *, id: str, context: ToolContext | None = None) -> ToolResult:  # noqa: A002 - the argument's fixed name
        """The new output, shortened as that of any command, and the state."""
        if self.shells is None:
            return background_unavailable()
        here = self.context_or_default(context)
        for _ in range(round(_WAIT_S / _POLL_S)):
            view = next((view for view in await self.shells.all(here) if view.shell_id == id), None)
            if view is None or view.unread_bytes or not view.is_running:
                break
            await asyncio.sleep(_POLL_S)
        output = await self.shells.read(here, id)
        if output is None:
            return _unknown_shell(id, await self.shells.all(here))
        return await run_in_thread(_format_output, output, here)


def _format_output(output: NewOutput, context: ToolContext) -> ToolResult:
    view = output.view
    metadata: dict[str, Any] = {"shell": view.shell_id, "is_running": view.is_running, "exit_code": view.code}
    text, removed, noted = "", "", dict[str, Any]()
    try:
        with open_existing_spool(output.spool) as spool:
            text, noted = read_output_range(spool, context, output.start, output.end)
    except FileNotFoundError:
        removed = "(its output was removed)"
    nothing = "(no new output)" if output.start or view.is_running else "(no output)"
    shown = removed or text.rstrip("\n") or nothing
    parts = (shown, f"[{view.state}]", input_hint(text, view.code or 0))
    display = f"{view.shell_id}: {view.state}"
    return ToolResult("\n".join(part for part in parts if part), display, metadata=metadata | noted)


class BashListTool(BaseTool):
    """Lists the background shells of a thread."""

    name = "bash_list"
    description = ToolDescription(
        short="List the background shells that bash started in this conversation, running or ended.",
        long="Each comes with its id, its state and its command.",
        usage_notes=("Use it where you no longer know an id.",),
        examples=(ToolExample({}),),
        important=("It reads no output; bash_output does.",),
    )
    tags = ("shell", "background", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "shell"
    args_schema = NoArguments
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - there are no arguments
        return "list background shells"

    async def execute(self, *, context: ToolContext | None = None) -> ToolResult:
        """One line each, the newest last."""
        if self.shells is None:
            return background_unavailable()
        views = await self.shells.all(self.context_or_default(context))
        older = len(views) - _MAX_LISTED
        lines = [f"({older} older ones, all ended)"] if older > 0 else []
        for view in views[-_MAX_LISTED:]:
            first, *more = view.command.strip().split("\n")
            cut = "…" if more or len(first) > _COMMAND_CHARS else ""
            unread = f", {format_count(view.unread_bytes, 'byte')} not read yet" if view.unread_bytes else ""
            lines.append(f"{view.shell_id}  {view.state}{unread}  $ {first[:_COMMAND_CHARS]}{cut}")
        running = sum(view.is_running for view in views)
        listed = [{"shell": view.shell_id, "is_running": view.is_running, "state": view.state} for view in views]
        return ToolResult(
            "\n".join(lines) or "There are no background shells.",
            display=f"{running} running, {len(views) - running} ended",
            metadata={"shells": listed[-_MAX_LISTED:]},
        )


class BashKillTool(BaseTool):
    """Ends a background shell with everything it started."""

    name = "bash_kill"
    description = ToolDescription(
        short="End a background shell that bash started, with every process it started.",
        long="They are asked to end, and killed if they do not.",
        usage_notes=("The output that you have not read stays readable.",),
        examples=(ToolExample({"id": "sh1"}),),
        important=("End what you no longer need.",),
    )
    tags = ("shell", "background", "execute")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.EXECUTE
    category = "shell"
    args_schema = ShellArgs
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def signature(self, args: Mapping[str, Any]) -> str:
        return str(args["id"])

    def display_call(self, args: Mapping[str, Any]) -> str:
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
            return _unknown_shell(id, await self.shells.all(here))
        size = format_count(view.unread_bytes, "byte")
        unread = f" bash_output shows the {size} not read yet." if view.unread_bytes else ""
        display = f"{view.shell_id}: {view.state}"
        return ToolResult(f"{display}.{unread}", display, metadata={"shell": view.shell_id, "state": view.state})

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Whether it still runs."""
        shell_id = str(call.arguments.get("id", ""))
        view = await self.shells.find(shell_id) if self.shells is not None else None
        if view is None:
            return Reconciliation("unknown", f"There is no background shell {shell_id!r} here.")
        if view.is_running:
            return Reconciliation("not_applied", f"{shell_id} is still running.")
        return Reconciliation("already_applied", f"{shell_id} has ended: {view.state}.")


def _unknown_shell(shell_id: str, known: list[ShellView]) -> ToolResult:
    ids = ", ".join(view.shell_id for view in known[-10:])
    there = f"it has {ids}" if ids else "it has none; bash with background=true starts one"
    return failure(ToolErrorType.NOT_FOUND, f"This thread has no background shell {shell_id!r}: {there}.")
