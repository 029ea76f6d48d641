"""Running a shell command. Whether it may run is not decided here.

What a command leaves running ends with the call, also where it left its session; the result says what that was.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
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
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.paths import PathRefused, containing_root, resolve
from tools.running import run_in_thread
from tools.sandbox.sandbox import SandboxUnavailable
from tools.shell_ops.background import BackgroundShells, started
from tools.shell_ops.changed_files import WorkspaceSnapshot, changed_files, take_snapshot
from tools.shell_ops.output import CommandEnd, Spool, open_spool, told
from tools.shell_ops.process import ChildProcess
from tools.shell_ops.start import ShellCommand, exit_code, exit_trap, sandbox_failure, spawn, walls

__all__ = ["BashArgs", "BashTool"]

_Stop = Literal["timeout", "flood"]
_LOOK_S = 0.05
"""How often the output of a running command is looked at."""
_NOTED = 100
"""So many changed files are named; of the others it is said how many there are."""


class BashArgs(BaseModel):
    """What to run, and where."""

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
    """See the module."""

    name = "bash"
    description = (
        "Run a command with bash in the workspace. There is no terminal and no input: commands that ask get the "
        "end of input at once. A changed working directory is kept for the next call while it lies inside; "
        "variables are not kept. Long output is shortened. What a command leaves running ends with the call: start "
        "servers and watchers with background=true, read them with bash_output, end them with bash_kill."
    )
    risk_level = ToolRiskLevel.HIGH
    kind = ToolKind.EXECUTE
    category = "shell"
    args_schema = BashArgs
    max_result_chars = 40_000
    """Its output is cut to the context's limit already; the lines about its ending come on top."""
    timeout_s = 660
    """Only a net below the command's own limit, which is 600 seconds at most."""
    shells: BackgroundShells | None = None
    """Given by whoever opens a session."""
    shell: tuple[str, ...] = ()
    """What goes before the command where that is not for bash."""

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Refuses what the shell could not be given."""
        command = str(args["command"])
        if not command.strip():
            return "command: it is empty; say what to run."
        return "command: it contains a NUL character, which no command can." if "\0" in command else None

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        """The command."""
        return [CommandTarget(str(args["command"]), str(args.get("working_directory") or ""))]

    def display_call(self, args: Mapping[str, Any]) -> str:
        """Whether it goes on in the background, and the first line of the command."""
        first, *more = str(args["command"]).strip().split("\n")
        place = "in the background " if args.get("background") else ""
        return f"{place}$ {first}" + (f" (+{len(more)} lines)" if more else "")

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview:
        """The command and the folder it would run in."""
        surroundings = self.context_or_default(context)
        place = args.get("working_directory") or surroundings.cwd or surroundings.workspace
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
        """Run it to its end, its limit, or its cancellation; nothing of it is left running, unless it was to be."""
        surroundings = self.context_or_default(context)
        if objection := self.validate({"command": command}):
            return failure(ToolErrorType.VALIDATION, objection)
        try:
            start = _start_folder(working_directory, surroundings)
        except PathRefused as refused:
            return refused.as_result()
        if background:
            run = ShellCommand(command, timeout, start, surroundings, self.shell, tells="code")
            return await started(run, self.shells)
        try:
            return await _run(ShellCommand(command, min(timeout, 600), start, surroundings, self.shell))
        except SandboxUnavailable as refusal:
            return failure(ToolErrorType.PERMISSION, f"The command was not run, for want of a sandbox: {refusal}.")


def _start_folder(given: str, context: ToolContext) -> Path:
    current = context.cwd or context.workspace
    resolved = resolve(given or str(current), workspace=context.workspace, roots=context.roots)
    if not resolved.inside:
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"working_directory {given or str(current)!r} is outside the workspace {context.workspace}; "
            "choose a folder in it.",
        )
    if resolved.path.is_dir():
        return resolved.path
    if given:
        raise PathRefused(ToolErrorType.NOT_FOUND, f"working_directory {given!r} is no folder; look with ls.")
    return context.workspace  # the folder the shell stood in is gone


async def _run(run: ShellCommand) -> ToolResult:
    context = run.context
    path = context.blobs.spool(context.thread_id, context.call_id, context.attempt) if context.blobs else None
    before = await run_in_thread(take_snapshot, context.workspace, context.limits.look_s)
    began = time.monotonic()
    with open_spool(path) as spool, _report_pipe() as (source, sink):
        async with walls(context) as confined:
            try:
                child = spawn(run, spool, sink, confined)
            except OSError as error:
                return failure(ToolErrorType.EXECUTION, f"The command could not be started: {error.strerror}.")
            stopped, left = await _supervise(child, run, spool)
        if stopped is None and not child.began:
            return sandbox_failure(spool)
        folder = _reported(source)
        ending = CommandEnd(
            code=exit_code(child, run, has_told=folder is not None),
            stopped=stopped,
            timeout_s=run.timeout,
            seconds=time.monotonic() - began,
            folder=_kept_folder(folder, run),
            outside=folder if folder is not None and not _is_in(context, folder) else None,
            start=run.start,
            left=left,
            exit_trap=exit_trap(sink),
            limits=context.sandbox.restrictions if context.sandbox and confined else "",
            undone=tuple(confined.undone) if confined else (),
            placeholders=confined.placeholders if confined else (),
        )
        result = await run_in_thread(told, run.command, ending, spool, context)
    if context.sandbox is not None:
        result.metadata["sandbox"] = confined.kind if confined else "none"
    return result if before is None else await run_in_thread(_with_changes, result, before, context)


def _with_changes(result: ToolResult, before: WorkspaceSnapshot, context: ToolContext) -> ToolResult:
    after = take_snapshot(context.workspace, context.limits.look_s, besides=before)
    if after is None:
        return result
    changed = [os.fsencode(name).decode("utf-8", "replace") for name in changed_files(before, after)]
    noted: dict[str, Any] = {"changed_files": changed[:_NOTED]}
    if len(changed) > _NOTED:
        noted["changed_files_more"] = len(changed) - _NOTED
    return replace(result, metadata={**result.metadata, **noted})


async def _supervise(child: ChildProcess, run: ShellCommand, spool: Spool) -> tuple[_Stop | None, tuple[str, ...]]:
    """Why it was stopped, and what it left running."""
    context = run.context
    left: tuple[str, ...] = ()
    try:
        if context.processes is not None:
            await context.processes.record(context, child.traces.group, child.traces.started)
        child.release()
        stopped = await _watch(child, run, spool)
        if stopped is None:
            left = await child.end_leftovers()
        else:
            await child.terminate()
    except asyncio.CancelledError:
        await child.terminate()
        raise
    finally:
        child.kill_all()
        spool.follow(lambda text: context.progress(ShellOutput(text)))
    return stopped, left


async def _watch(child: ChildProcess, run: ShellCommand, spool: Spool) -> _Stop | None:
    deadline = time.monotonic() + run.timeout
    while not await child.wait(_LOOK_S):
        spool.follow(lambda text: run.context.progress(ShellOutput(text)))
        if spool.size > run.context.limits.spool_bytes:
            return "flood"
        if time.monotonic() > deadline:
            return "timeout"
    return None


@contextmanager
def _report_pipe() -> Iterator[tuple[int, int]]:
    """A pipe for the folder in which the shell ends; never waited for, as a background child may hold it open."""
    source, sink = os.pipe()
    os.set_blocking(source, False)
    try:
        yield source, sink
    finally:
        os.close(source)
        os.close(sink)


def _reported(source: int) -> Path | None:
    try:
        lines = os.read(source, 64 * 1024).decode("utf-8", "surrogateescape").rstrip("\n")
    except BlockingIOError:
        return None
    return Path(lines) if lines.startswith("/") and "\0" not in lines else None


def _kept_folder(folder: Path | None, run: ShellCommand) -> Path | None:
    """Where the shell stands from now on, when that changes: only folders that exist, in the workspace."""
    if folder is None or folder == run.start or not folder.is_dir() or not _is_in(run.context, folder):
        return None
    return folder


def _is_in(context: ToolContext, folder: Path) -> bool:
    return containing_root((context.workspace, *context.roots), folder) is not None
