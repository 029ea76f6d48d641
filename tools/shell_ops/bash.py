"""The bash tool: runs a shell command. Whether it may run is decided elsewhere.

What a command leaves running ends with the call, even if it left its session; the result says what that was.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    CommandTarget,
    Preview,
    ShellOutput,
    Target,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.paths import PathRefused, containing_root, given_path, quoted_path, resolve
from tools.running import run_in_thread
from tools.sandbox.sandbox import NO_LIMITS, ResourceLimits, SandboxUnavailable
from tools.shell_ops.background import BackgroundShells, start_in_background
from tools.shell_ops.changed_files import WorkspaceSnapshot, changed_files, take_snapshot
from tools.shell_ops.output import CommandEnd, Spool, format_result, open_spool, parse_report
from tools.shell_ops.process import ChildProcess
from tools.shell_ops.shell_command import (
    LimitStop,
    ShellCommand,
    command_sandbox,
    exceeded_limit,
    exit_code,
    format_sandbox_failure,
    refused_in_every_mode,
    sandbox_error,
    spawn,
)
from tools.text import format_count

__all__ = ["BashArgs", "BashTool"]

_Stop = Literal["timeout"] | LimitStop

_POLL_S = 0.05
"""How often the output of a running command is read."""
_PURPOSE_CHARS = 100
_MAX_REPORT_BYTES = 1024 * 1024
_MAX_NAMED_FILES = 100
"""So many changed files are named, and the number of the others."""


class BashArgs(BaseModel):
    command: str = Field(description="the command, as bash reads it")
    description: str = Field(default="", description="what it is for, in a few words")
    timeout: float = Field(default=120, gt=0, le=600, description="seconds after which it is stopped, 600 at most")
    working_directory: str = Field(
        default="",
        description="folder for this call alone, relative to the workspace; otherwise the shell's current one",
    )
    background: bool = Field(
        default=False,
        description="for servers and watchers: it goes on while you work, without time limit; its id comes at once",
    )


class BashTool(BaseTool):
    """Runs a command with bash in the workspace."""

    name = "bash"
    description = ToolDescription(
        short="Run a command with bash in the workspace.",
        long="There is no terminal and no input: commands that ask get the end of input at "
        "once. A changed working directory is kept for the next call while it lies "
        "inside; variables are not kept.",
        usage_notes=(
            "Long output is shortened.",
            "Start servers and watchers with background=true, read them with bash_output, end them with bash_kill.",
        ),
        examples=(ToolExample({"command": "npm test -- --run", "description": "Run the tests"}),),
        important=("What a command leaves running ends with the call.",),
    )
    tags = ("shell", "execute")
    risk_level = ToolRiskLevel.HIGH
    kind = ToolKind.EXECUTE
    category = "shell"
    args_schema = BashArgs
    max_result_chars = 40_000
    """Its output is already cut to the context's limit; the notes on how it ended are added."""
    timeout_s = 660
    """A safety net: the command has its own limit of 600 seconds at most."""
    ends_in_time = True
    shells: BackgroundShells | None = None
    """Set when a session is opened."""

    def shell_words(self, workspace: Path) -> tuple[str, ...]:  # noqa: ARG002 - another shell is looked for outside of it
        """The words before the command, if it is for another shell than bash.

        Raises:
            PathRefused: that shell is not installed.
        """
        return ()

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Reject what cannot be passed to a shell."""
        command = str(args["command"])
        if not command.strip():
            return "command: it is empty; say what to run."
        return "command: it contains a NUL character, which no command can." if "\0" in command else None

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [CommandTarget(str(args["command"]), str(args.get("working_directory") or ""))]

    def display_call(self, args: Mapping[str, Any]) -> str:
        """Whether it runs in the background, the first line of the command, and what it is for."""
        first, *more = str(args["command"]).strip().split("\n")
        place = "in the background " if args.get("background") else ""
        purpose = " ".join(str(args.get("description") or "").split())[:_PURPOSE_CHARS]
        others = f" (+{format_count(len(more), 'line')})" if more else ""
        return f"{place}$ {first}{others}{f'  # {purpose}' if purpose else ''}"

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview:
        """The command and the folder it would run in."""
        here = self.context_or_default(context)
        place = args.get("working_directory") or here.cwd or here.workspace
        return Preview("text", f"{args['command']}\n[in {place}]")

    async def execute(
        self,
        *,
        command: str,
        description: str = "",  # noqa: ARG002 - for the person who is asked
        timeout: float = 120,  # noqa: ASYNC109 - the model's argument: the command's limit, not this coroutine's
        working_directory: str = "",
        background: bool = False,
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run it to its end, its limit, or its cancellation; only background commands are left running."""
        here = self.context_or_default(context)
        if objection := self.validate({"command": command}):
            return failure(ToolErrorType.VALIDATION, objection)
        try:
            start, shell = _start_folder(working_directory, here), self.shell_words(here.workspace)
        except PathRefused as refused:
            return refused.as_result()
        if not here.has_policy and (why := refused_in_every_mode(command, is_bash=not shell)):
            return failure(ToolErrorType.PERMISSION, f"This command is never run: {why}.")
        if background:
            run = ShellCommand(
                command,
                timeout,
                start,
                here,
                shell,
            )
            return await start_in_background(run, self.shells)
        try:
            return await _run(
                ShellCommand(command, min(timeout, 600, here.limits.call_s or 600), start, here, shell)
            )
        except SandboxUnavailable as error:
            return failure(
                ToolErrorType.PERMISSION, f"The command was not run, because there is no sandbox: {error}."
            )


def _start_folder(given: str, context: ToolContext) -> Path:
    current = context.cwd or context.workspace
    resolved = resolve(given_path(given) or str(current), workspace=context.workspace, roots=context.roots)
    if not resolved.inside:
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"working_directory {quoted_path(given or str(current))} is outside the workspace {context.workspace}; "
            "choose a folder in it.",
        )
    if resolved.path.is_dir():
        return resolved.path
    if given:
        raise PathRefused(
            ToolErrorType.NOT_FOUND, f"working_directory {quoted_path(given)} is not a folder; check with ls."
        )
    return context.workspace  # the shell's current folder was removed


async def _run(run: ShellCommand) -> ToolResult:
    context = run.context
    path = context.blobs.spool(context.thread_id, context.call_id, context.attempt) if context.blobs else None
    before = await run_in_thread(take_snapshot, context.workspace, context.limits.look_s)
    started_at = time.monotonic()
    # A file also for what the shell reports: a pipe would break if this process ended first.
    with open_spool(path) as spool, open_spool(None) as report_spool:
        async with command_sandbox(context) as launch:
            try:
                child = spawn(run, spool, report_spool.sink, launch)
            except OSError as error:
                return failure(ToolErrorType.EXECUTION, f"The command could not be started: {error.strerror}.")
            limits = launch.limits if launch else NO_LIMITS
            stopped, left = await _supervise(child, run, spool, limits)
        if stopped is None and not child.has_started:
            return failure(ToolErrorType.EXECUTION, format_sandbox_failure(sandbox_error(spool)))
        report = parse_report(report_spool.read(0, _MAX_REPORT_BYTES))
        folder = Path(report.folder) if report.folder.startswith("/") else None
        is_inside = folder is not None and containing_root((context.workspace, *context.roots), folder) is not None
        end = CommandEnd(
            code=exit_code(child, run, has_reported=folder is not None),
            stopped=stopped,
            timeout_s=run.timeout,
            seconds=time.monotonic() - started_at,
            folder=folder if folder and is_inside and folder != run.start and folder.is_dir() else None,
            outside=folder if not is_inside else None,
            start=run.start,
            left=left,
            report=report,
            limits=limits,
            restrictions=context.sandbox.restrictions if context.sandbox and launch else "",
            restored=tuple(launch.restored) if launch else (),
            placeholders=launch.placeholders if launch else (),
        )
        result = await run_in_thread(format_result, end, spool, context)
    if context.sandbox is not None:
        result.metadata["sandbox"] = launch.kind if launch else "none"
    if before is not None:
        result.metadata.update(await run_in_thread(_changes_since, before, context))
    return result


def _changes_since(before: WorkspaceSnapshot, context: ToolContext) -> dict[str, Any]:
    """The metadata that names the changed files; empty if there is no time to look."""
    after = take_snapshot(context.workspace, context.limits.look_s, before)
    if after is None:
        return {}
    changed = [os.fsencode(name).decode("utf-8", "replace") for name in changed_files(before, after)]
    more = {"changed_files_more": len(changed) - _MAX_NAMED_FILES} if len(changed) > _MAX_NAMED_FILES else {}
    return {"changed_files": changed[:_MAX_NAMED_FILES], **more}


async def _supervise(
    child: ChildProcess, run: ShellCommand, spool: Spool, limits: ResourceLimits
) -> tuple[_Stop | None, tuple[str, ...]]:
    """Why it was stopped, and what it left running."""
    context = run.context
    stopped: _Stop | None = None
    left: tuple[str, ...] = ()

    def report_output() -> None:
        spool.follow(lambda text: context.progress(ShellOutput(text)))

    try:
        if context.processes is not None:
            await context.processes.record(context, child.traces.group, child.traces.started)
        child.release()
        deadline = time.monotonic() + run.timeout
        while stopped is None and not await child.wait(_POLL_S):
            report_output()
            spool.trim(context.limits.spool_bytes)
            stopped = "timeout" if time.monotonic() > deadline else exceeded_limit(child, limits)
        if stopped is None:
            left = await child.end_leftovers()
        elif stopped == "timeout":  # At another limit it would only continue meanwhile.
            await child.terminate()
    except asyncio.CancelledError:
        await child.terminate()
        raise
    finally:
        child.kill_all()
        report_output()
        spool.trim(context.limits.spool_bytes)
    return stopped, left
