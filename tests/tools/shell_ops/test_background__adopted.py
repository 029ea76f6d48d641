import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.fakes.waiting import is_running, until
from tools.shell_ops.background import ReattachedProcesses
from tools.shell_ops.process import ProcessTraces, command_line, start_time

_MARK = f"a-mark-of-this-test-{os.getpid()}"


async def _orphan(folder: Path, script: str) -> tuple[asyncio.subprocess.Process, ReattachedProcesses]:
    """A command that leads its own session and is ours by its mark alone."""
    environment = {"GRAPH_AGENT_CALL": _MARK, "PATH": "/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", script, cwd=folder, env=environment, start_new_session=True
    )
    return process, ReattachedProcesses(ProcessTraces(process.pid, start_time(process.pid), _MARK))


async def test_its_end_is_noticed(tmp_path: Path) -> None:
    process, adopted = await _orphan(tmp_path, "until [ -e go ]; do sleep 0.02; done")
    before = await adopted.wait(0.05)
    (tmp_path / "go").touch()

    assert (before, await until(lambda: not is_running(process.pid)), await adopted.wait(0)) == (False, True, True)
    await process.wait()


async def test_what_ignores_being_asked_is_killed_with_its_children(
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


async def test_what_it_leaves_running_is_asked_to_end_and_named(tmp_path: Path) -> None:
    script = "setsid sh -c 'exec sleep 61.4' & echo $! > pid; until [ -e go ]; do sleep 0.02; done"
    process, adopted = await _orphan(tmp_path, script)
    assert await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    left = int((tmp_path / "pid").read_text())
    assert await until(lambda: command_line(left).startswith("sleep 61.4"))
    (tmp_path / "go").touch()
    await process.wait()
    began = time.monotonic()

    [named] = await adopted.end_leftovers()

    assert (named.startswith("sleep 61.4"), time.monotonic() - began < 2) == (True, True)
