from pathlib import Path

from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.waiting import is_running, until
from tools.shell_ops.background import BackgroundCommand, ShellExit, start_background_command
from tools.shell_ops.shell_command import ShellCommand


async def _going(
    folder: Path, command: str, ended: list[ShellExit], *, outlives: bool = False
) -> BackgroundCommand:
    context = ToolSurroundings(folder).context()
    run = ShellCommand(command, 1, context.workspace, context, reports="code")
    shell, child = await start_background_command(run, folder / "out", outlives=outlives)

    async def take_in(outcome: ShellExit) -> None:
        ended.append(outcome)

    child.release()
    shell.watch(take_in)
    return shell


async def test_it_is_watched_to_its_own_end(tmp_path: Path) -> None:
    ended: list[ShellExit] = []
    await _going(tmp_path, "sleep 0.2; kill -9 $$", ended)

    assert await until(lambda: ended == [ShellExit("exited", -9)])


async def test_being_ended_twice_is_being_ended_once_and_the_first_reason_counts(tmp_path: Path) -> None:
    ended: list[ShellExit] = []
    shell = await _going(tmp_path, "sleep 61.1", ended)

    await shell.end("kill")
    await shell.end("session")

    assert ended == [ShellExit("kill", -15)]


async def test_one_that_was_never_let_go_leaves_nothing(tmp_path: Path) -> None:
    context = ToolSurroundings(tmp_path).context()
    run = ShellCommand("touch ran", 1, context.workspace, context, reports="code")
    shell, _ = await start_background_command(run, tmp_path / "out", outlives=False)

    await shell.discard()

    assert (is_running(shell.traces.group), (context.workspace / "ran").exists()) == (False, False)


async def test_one_that_is_let_be_goes_on_unwatched(tmp_path: Path) -> None:
    ended: list[ShellExit] = []
    shell = await _going(tmp_path, "until [ -e go ]; do sleep 0.02; done; touch went", ended, outlives=True)

    await shell.detach()

    (tmp_path / "ws" / "go").touch()
    assert await until((tmp_path / "ws" / "went").exists)
    assert ended == []
