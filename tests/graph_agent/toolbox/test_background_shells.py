import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graph_agent.errors import StorageError
from graph_agent.events import ShellContinued, ShellEnded
from graph_agent.ports.background import ShellEnding
from graph_agent.toolbox.background_shells import format_duration, format_ending, read_spool_end
from tests.fakes.background import Background, background
from tests.fakes.waiting import is_running, until
from tests.fakes.walls import sandbox
from tools.base import Limits, ToolContext
from tools.sandbox import Sandbox

_SLEEPS = "echo $$ > pid; sleep 61.1"


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Background]:
    async with background(tmp_path) as life:
        yield life


class _FullDisk:
    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        raise StorageError(f"no room for {context.call_id}, {group}, {start_time}")


async def _gone(pid: int) -> bool:
    return await until(lambda: not is_running(pid))


async def _dies(life: Background) -> None:
    """What a kill -9 of the agent leaves: commands that go on, and nobody who watches."""
    for shell in life.shells._running.values():
        await shell.detach()
    life.shells._running.clear()


async def test_a_shell_outlives_its_call_and_ends_with_the_session_which_is_told(life: Background) -> None:
    result = await life.start(_SLEEPS)
    pid = await life.pid()
    lived = is_running(pid)

    await life.shells.close()

    assert (result.error, result.metadata, lived, is_running(pid)) == (None, {"shell": "sh1"}, True, False)
    assert life.events == [ShellEnded("sh1", _SLEEPS, "ended with the session that started it", "session")]


async def test_a_command_is_not_let_go_before_its_group_is_on_disk(life: Background) -> None:
    life.processes = _FullDisk()

    with pytest.raises(StorageError):
        await life.start("touch ran")

    assert (await life.listed()).output == "There are no background shells."
    assert not (life.around.workspace / "ran").exists()


async def test_one_that_ends_by_itself_is_told_with_its_exit_code(life: Background) -> None:
    await life.start("sleep 0.4; exit 7")

    told = "exit code 7, that of the last command; earlier ones may have failed"
    assert await until(lambda: life.events == [ShellEnded("sh1", "sleep 0.4; exit 7", told, "exited")])


async def test_one_that_cannot_begin_is_told_at_once(life: Background) -> None:
    result = await life.start("no-such-thing")

    assert "sh1, and it has ended already: exit code 127." in result.output


async def test_what_it_leaves_running_ends_with_it(life: Background) -> None:
    await life.start("sleep 61.2 & echo $! > pid; setsid sleep 61.3 & echo $! > other")

    assert await _gone(await life.pid())
    assert await _gone(await life.pid("other"))


async def test_a_thread_has_only_so_many_at_a_time(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(shells=2)) as life:
        for _ in range(2):
            await life.start("sleep 61.4")
        refused = await life.start("touch ran")
        other = await life.start("true", thread="t2")
        await life.kill("sh1")
        after = await life.start("true")

        told = "2 background shells run already (sh1, sh2); end one with bash_kill first."
        assert (refused.error, other.error, after.error) == (told, None, None)
        assert not (life.around.workspace / "ran").exists()


async def test_one_that_writes_too_much_is_ended_and_says_so(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(spool_bytes=100_000)) as life:
        await life.start("yes")

        assert await until(lambda: bool(life.events))
        output = (await life.output("sh1")).output
        assert output.endswith("[ended because it wrote more than it may; only the beginning was kept]")
        assert (await life.shells.all(life.context("t1", "x")))[0].output_bytes == 100_000


async def test_the_next_life_ends_what_a_dead_one_left_running(life: Background) -> None:
    await life.start(_SLEEPS)
    pid = await life.pid()
    await _dies(life)
    lived = is_running(pid)
    after = life.next_life()

    await after.shells.reattach("t1")

    told = "ended because the program that started it had died"
    assert (lived, is_running(pid)) == (True, False)
    assert after.events == [ShellEnded("sh1", _SLEEPS, told, "found_dead")]
    assert (await after.output("sh1")).output == f"(no output)\n[{told}]"


async def test_the_next_life_learns_the_exit_code_of_what_ended_unseen(life: Background) -> None:
    command = "echo $$ > pid; sleep 0.3; echo late; exit 4"
    await life.start(command)
    await _dies(life)
    await _gone(await life.pid())
    after = life.next_life()

    await after.shells.reattach("t1")

    assert [event.reason for event in after.events if isinstance(event, ShellEnded)] == ["exited_unobserved"]
    output = await after.output("sh1")
    assert output.output.startswith("late\n[ended while nobody watched, exit code 4,")
    assert output.metadata["exit_code"] == 4


async def test_a_number_that_belongs_to_another_process_by_now_is_left_alone(life: Background) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "61.5")
    await life.start("true")
    await until(lambda: bool(life.events))
    statement = "UPDATE background_shells SET ended_at = NULL, ending = NULL"
    stolen = "UPDATE journal SET process_group = ?"
    await life.database.write(lambda connection: connection.execute(statement))
    await life.database.write(lambda connection: connection.execute(stolen, (bystander.pid,)))

    await life.next_life().shells.reattach("t1")

    lived = is_running(bystander.pid)
    bystander.kill()
    await bystander.wait()
    assert lived


async def test_nothing_of_another_thread_is_touched(life: Background) -> None:
    await life.start(_SLEEPS, thread="t2")
    pid = await life.pid()
    await _dies(life)

    await life.next_life().shells.reattach("t1")
    lived = is_running(pid)
    await life.next_life().shells.reattach("t2")

    assert (lived, is_running(pid)) == (True, False)


async def test_those_of_a_sub_agent_are_found_with_its_parent(life: Background) -> None:
    rows = [("t1", None, None), ("child", "t1", "c0"), ("fork", "t1", None)]
    insert = (
        "INSERT INTO threads (thread_id, created_at, updated_at, parent_thread, parent_call)"
        " VALUES (?1, '', '', ?2, ?3)"
    )
    await life.database.write(lambda connection: connection.executemany(insert, rows))
    await life.start(_SLEEPS, thread="child")
    await life.start("echo $$ > other; sleep 61.6", thread="fork")
    pids = [await life.pid(), await life.pid("other")]
    await _dies(life)

    await life.next_life().shells.reattach("t1")

    lived = [is_running(pid) for pid in pids]
    os.kill(pids[1], signal.SIGKILL)
    assert lived == [False, True]


async def test_kept_shells_go_on_after_the_session_and_are_the_next_ones(tmp_path: Path) -> None:
    command = "echo $$ > pid; echo one; until [ -e go ]; do sleep 0.05; done; echo two; exec sleep 61.7"
    async with background(tmp_path, keeps=True) as life:
        await life.start(command)
        pid = await life.pid()
        await life.output("sh1")
        await life.shells.close()
        after = life.next_life(keeps=True)
        await after.shells.reattach("t1")
        (life.around.workspace / "go").touch()
        output = (await after.output("sh1")).output
        lived = is_running(pid)

        killed = await after.kill("sh1")

        kept = [ShellContinued("sh1", command)]
        assert (life.events, after.events, lived, is_running(pid)) == (kept, kept, True, False)
        assert output.startswith("two\n[running for")
        assert killed.output == "sh1: ended by bash_kill."


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_in_the_sandbox_they_are_kept_too(tmp_path: Path, kind: str) -> None:
    async with background(tmp_path, keeps=True) as life:
        life.around.sandbox = sandbox(kind, life.around.workspace)
        await life.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 5")
        await life.shells.close()
        after = life.next_life(keeps=True)
        await after.shells.reattach("t1")
        (life.around.workspace / "go").touch()

        assert await until(lambda: any(isinstance(event, ShellEnded) for event in after.events))
        output = (await after.output("sh1")).output
        assert (output.startswith("one\ntwo\n[exit code 5"), (await after.output("sh1")).metadata["exit_code"]) == (
            True,
            5,
        )


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_in_the_sandbox_one_is_ended_whole(tmp_path: Path, kind: str) -> None:
    async with background(tmp_path) as life:
        life.around.sandbox = sandbox(kind, life.around.workspace)
        await life.start("trap 'echo bye; exit 0' TERM; sleep 61.81 & wait")

        killed = await life.kill("sh1")

        assert killed.output.startswith("sh1: ended by bash_kill.")
        assert (await life.output("sh1")).output.startswith("bye\n[ended by bash_kill]")


async def test_a_sandbox_that_cannot_be_set_up_is_told_and_nothing_ran(tmp_path: Path) -> None:
    async with background(tmp_path) as life:
        box = sandbox("bubblewrap", life.around.workspace)
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho 'no namespaces here' >&2; exit 1\n")
        broken.chmod(0o755)
        backend = box.backend._replace(program=str(broken))
        life.around.sandbox = Sandbox(box.rules, look=lambda: backend)

        result = await life.start("touch ran")

        assert result.error is not None
        assert "could not be set up, and the command did not run: no namespaces here" in result.error
        assert not (life.around.workspace / "ran").exists()


async def test_an_end_that_no_call_has_told_is_news_for_the_model(life: Background) -> None:
    await life.start("sleep 0.4; echo out; exit 7")
    await life.start("no-such-thing")
    await life.start(_SLEEPS)
    await life.start(_SLEEPS)
    await life.kill("sh4")
    assert await until(
        lambda: any(event.shell_id == "sh1" for event in life.events if isinstance(event, ShellEnded))
    )

    told = await life.shells.ended("t1")
    await life.output("sh1")
    after = await life.shells.ended("t1")
    await life.shells.close()
    later = life.next_life()

    words = "exit code 7, that of the last command; earlier ones may have failed"
    assert (told, after) == ({"sh1": f"{words}  $ sleep 0.4; echo out; exit 7"}, {})
    ended = await later.shells.ended("t1")
    assert {name: how for name, how in ended.items() if name != "sh2"} == {
        "sh3": f"ended with the session that started it  $ {_SLEEPS}"
    }


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (ShellEnding("exited", 0), "exit code 0"),
        (ShellEnding("exited", -9), "killed by signal SIGKILL"),
        (ShellEnding("exited"), "ended, nobody knows how"),
        (ShellEnding("kill", -15), "ended by bash_kill"),
        (ShellEnding("exited_unobserved", 4), "ended while nobody watched, exit code 4"),
        (ShellEnding("exited_unobserved"), "ended with the program that had started it, or after"),
        (ShellEnding("of a later version", 1), "exit code 1"),
    ],
)
def test_an_ending_is_told_for_what_it_is(ending: ShellEnding, told: str) -> None:
    assert format_ending(ending, "npm start") == told


def test_a_time_span_is_told_in_the_unit_that_fits() -> None:
    spans = [format_duration(seconds) for seconds in (-1, 0.4, 119, 120, 7_199, 7_200, 172_800)]

    assert spans == ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]


def test_the_end_of_a_long_output_is_kept_without_half_characters(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_text("é" * 3000 + "x")

    assert read_spool_end(spool) == "é" * 1999 + "x"


def test_nothing_that_moves_a_cursor_is_kept(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(b"10%\r\x1b[31m20%\x1b[0m\nhalf\n")

    assert read_spool_end(spool) == "20%\nhalf"


def test_a_call_that_wrote_nothing_has_no_output(tmp_path: Path) -> None:
    assert read_spool_end(tmp_path / "none") == ""
