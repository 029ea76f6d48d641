import asyncio
import os
import time
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import is_running, until
from tools.shell_ops.background import (
    BackgroundCommand,
    BackgroundShells,
    ReattachedProcesses,
    ShellExit,
    ShellView,
    TooManyShells,
    start_background_command,
    start_in_background,
)
from tools.shell_ops.background_tools import BashKillTool
from tools.shell_ops.process import ProcessTraces, command_line, start_time
from tools.shell_ops.shell_command import ShellCommand


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (TooManyShells("8 run already"), "8 run already"),
        (OSError(12, "Cannot allocate memory"), "The command could not be started: Cannot allocate memory."),
    ],
)
async def test_a_refusal_is_a_result_that_says_why(tmp_path: Path, refusal: Exception, error: str) -> None:
    context, shells = ToolEnvironment(tmp_path).context(), AsyncMock(BackgroundShells)
    shells.start.side_effect = refusal

    result = await start_in_background(ShellCommand("true", 1, context.workspace, context), shells)

    assert (result.error, result.metadata) == (error, {"error_type": "execution"})


async def test_only_the_newest_of_many_shells_are_named(tmp_path: Path) -> None:
    known = [ShellView(f"sh{number}", "true", "exit code 0", is_running=False) for number in range(1, 13)]
    tool = BashKillTool()
    tool.shells = AsyncMock(BackgroundShells)
    tool.shells.end.return_value, tool.shells.all.return_value = None, known

    result = await tool.execute(id="x", context=ToolEnvironment(tmp_path).context())

    assert (result.error or "").endswith("it has sh3, sh4, sh5, sh6, sh7, sh8, sh9, sh10, sh11, sh12.")


async def _going(
    folder: Path, command: str, ended: list[ShellExit], *, outlives: bool = False
) -> BackgroundCommand:
    context = ToolEnvironment(folder).context()
    run = ShellCommand(command, 1, context.workspace, context)
    shell, child = await start_background_command(run, folder / "out", outlives=outlives)

    async def take_in(outcome: ShellExit) -> None:
        ended.append(outcome)

    child.release()
    shell.watch(take_in)
    return shell


async def test_a_background_command_is_watched_until_it_ends_for_the_first_reason(tmp_path: Path) -> None:
    alone: list[ShellExit] = []
    ended: list[ShellExit] = []
    await _going(tmp_path, "sleep 0.2; kill -9 $$", alone)
    (tmp_path / "other").mkdir()
    shell = await _going(tmp_path / "other", "sleep 61.1", ended)

    await shell.end("kill")
    await shell.end("session")

    assert ended == [ShellExit("kill", -15)]
    assert await until(lambda: alone == [ShellExit("exited", -9)])


async def test_a_command_that_was_never_released_leaves_nothing(tmp_path: Path) -> None:
    context = ToolEnvironment(tmp_path).context()
    run = ShellCommand("touch ran", 1, context.workspace, context)
    shell, _ = await start_background_command(run, tmp_path / "out", outlives=False)

    await shell.discard()

    assert (is_running(shell.traces.group), (context.workspace / "ran").exists()) == (False, False)


async def test_a_detached_command_continues_unwatched(tmp_path: Path) -> None:
    ended: list[ShellExit] = []
    shell = await _going(tmp_path, "until [ -e go ]; do sleep 0.02; done; touch went", ended, outlives=True)

    await shell.detach()

    (tmp_path / "ws" / "go").touch()
    assert await until((tmp_path / "ws" / "went").exists)
    assert ended == []


_MARK = f"a-mark-of-this-test-{os.getpid()}"


async def _orphan(folder: Path, script: str) -> tuple[asyncio.subprocess.Process, ReattachedProcesses]:
    """A command that leads its own session and is ours by its mark alone."""
    environment = {"GRAPH_AGENT_CALL": _MARK, "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, cwd=folder, env=environment, start_new_session=True
    )
    return process, ReattachedProcesses(ProcessTraces(process.pid, start_time(process.pid), _MARK))


async def test_a_reattached_command_that_ignores_sigterm_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.shell_ops.background._GRACE_S", 0.1)
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > pid; sleep 61.2' & sleep 61.3"
    process, adopted = await _orphan(tmp_path, script)
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    await adopted.terminate()
    lived = is_running(process.pid)

    adopted.kill_all()

    assert (lived, is_running(process.pid), is_running(int((tmp_path / "pid").read_text()))) == (True, False, False)
    await process.wait()


async def test_leftovers_of_a_reattached_command_are_asked_to_end_and_named(tmp_path: Path) -> None:
    script = "setsid sh -c 'exec sleep 61.4' & echo $! > pid; until [ -e go ]; do sleep 0.02; done"
    process, adopted = await _orphan(tmp_path, script)
    assert await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    left = int((tmp_path / "pid").read_text())
    assert await until(lambda: command_line(left).startswith("sleep 61.4"))
    before = await adopted.wait(0.05)
    (tmp_path / "go").touch()
    assert (before, await until(lambda: not is_running(process.pid)), await adopted.wait(0)) == (False, True, True)
    await process.wait()
    began = time.monotonic()

    [named] = await adopted.end_leftovers()

    assert (named.startswith("sleep 61.4"), time.monotonic() - began < 2) == (True, True)
