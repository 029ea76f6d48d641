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
from tests.fakes.sandboxes import sandbox
from tests.fakes.waiting import is_running, until
from tools.base import Limits, ToolContext
from tools.sandbox import Sandbox
from tools.shell_ops.output import ShellReport

_SLEEPS = "echo $$ > pid; sleep 61.1"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Background]:
    async with background(tmp_path) as run:
        yield run


class _FullDisk:
    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        raise StorageError(f"no room for {context.call_id}, {group}, {start_time}")


async def _has_ended(pid: int) -> bool:
    return await until(lambda: not is_running(pid))


async def _kill_agent(run: Background) -> None:
    """Leave what a kill -9 of the agent leaves: commands that still run, and nobody who watches them."""
    for shell in run.shells._running.values():
        await shell.detach()
    run.shells._running.clear()


async def test_a_shell_outlives_its_call_and_ends_with_the_session(run: Background) -> None:
    result = await run.start(_SLEEPS)
    pid = await run.pid()
    lived = is_running(pid)

    await run.shells.close()

    assert (result.error, result.metadata, lived, is_running(pid)) == (None, {"shell": "sh1"}, True, False)
    assert run.events == [ShellEnded("sh1", _SLEEPS, "ended with the session that started it", "session")]


async def test_a_command_does_not_start_before_its_process_group_is_recorded(run: Background) -> None:
    run.processes = _FullDisk()

    with pytest.raises(StorageError):
        await run.start("touch ran")

    assert (await run.listed()).output == "There are no background shells."
    assert not (run.around.workspace / "ran").exists()


async def test_the_exit_code_of_a_shell_is_reported_also_if_it_cannot_even_begin(run: Background) -> None:
    result = await run.start("no-such-thing")
    await run.start("sleep 0.4; exit 7")

    state = "exit code 7"
    assert "sh1, and it has ended already: exit code 127." in result.output
    assert await until(lambda: ShellEnded("sh2", "sleep 0.4; exit 7", state, "exited") in run.events)


async def test_processes_that_a_shell_leaves_running_end_with_it(run: Background) -> None:
    await run.start("sleep 61.2 & echo $! > pid; setsid sleep 61.3 & echo $! > other")

    assert await _has_ended(await run.pid())
    assert await _has_ended(await run.pid("other"))


async def test_a_thread_has_a_limited_number_of_shells(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(shells=2)) as run:
        for _ in range(2):
            await run.start("sleep 61.4")
        refused = await run.start("touch ran")
        other = await run.start("true", thread="t2")
        await run.kill("sh1")
        after = await run.start("true")

        state = "2 background shells run already (sh1, sh2); end one with bash_kill first."
        assert (refused.error, other.error, after.error) == (state, None, None)
        assert not (run.around.workspace / "ran").exists()


async def test_of_what_a_shell_writes_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(spool_bytes=100_000)) as run:
        await run.start("echo first; yes | head -c 5000000; echo; sleep 0.3; false | cat; echo last")

        assert await until(lambda: bool(run.events))
        output = (await run.output("sh1")).output
        state = "[exit code 0; in an earlier pipeline, command 1 of 2 failed with exit code 1]"
        assert (output[:8], output.endswith(f"\nlast\n{state}")) == ("first\ny\n", True)
        assert "bytes from its middle were not kept" in output
        assert (await run.shells.all(run.context("t1", "x")))[0].output_bytes == 5_000_012


async def test_the_next_run_ends_what_a_dead_one_left_running(run: Background) -> None:
    await run.start(_SLEEPS)
    pid = await run.pid()
    await _kill_agent(run)
    lived = is_running(pid)
    after = run.next_run()

    await after.shells.reattach("t1")

    state = "ended because the program that started it ended unexpectedly"
    assert (lived, is_running(pid)) == (True, False)
    assert after.events == [ShellEnded("sh1", _SLEEPS, state, "found_dead")]
    assert (await after.output("sh1")).output == f"(no output)\n[{state}]"


async def test_the_next_run_learns_the_exit_code_of_a_shell_that_ended_unobserved(run: Background) -> None:
    command = "echo $$ > pid; sleep 0.3; echo late; exit 4"
    await run.start(command)
    await _kill_agent(run)
    await _has_ended(await run.pid())
    after = run.next_run()

    await after.shells.reattach("t1")

    assert [event.reason for event in after.events if isinstance(event, ShellEnded)] == ["exited_unobserved"]
    output = await after.output("sh1")
    assert output.output.startswith("late\n[ended unobserved, exit code 4]")
    assert output.metadata["exit_code"] == 4


async def test_a_process_that_has_got_the_same_pid_is_left_alone(run: Background) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "61.5")
    await run.start("true")
    await until(lambda: bool(run.events))
    statement = "UPDATE background_shells SET ended_at = NULL, ending = NULL"
    stolen = "UPDATE journal SET process_group = ?"
    await run.database.write(lambda connection: connection.execute(statement))
    await run.database.write(lambda connection: connection.execute(stolen, (bystander.pid,)))

    await run.next_run().shells.reattach("t1")

    lived = is_running(bystander.pid)
    bystander.kill()
    await bystander.wait()
    assert lived


async def test_shells_of_another_thread_are_not_touched(run: Background) -> None:
    await run.start(_SLEEPS, thread="t2")
    pid = await run.pid()
    await _kill_agent(run)

    await run.next_run().shells.reattach("t1")
    lived = is_running(pid)
    await run.next_run().shells.reattach("t2")

    assert (lived, is_running(pid)) == (True, False)


async def test_shells_of_a_sub_agent_are_found_with_its_parent(run: Background) -> None:
    rows = [("t1", None, None), ("child", "t1", "c0"), ("fork", "t1", None)]
    insert = (
        "INSERT INTO threads (thread_id, created_at, updated_at, parent_thread, parent_call)"
        " VALUES (?1, '', '', ?2, ?3)"
    )
    await run.database.write(lambda connection: connection.executemany(insert, rows))
    await run.start(_SLEEPS, thread="child")
    await run.start("echo $$ > other; sleep 61.6", thread="fork")
    pids = [await run.pid(), await run.pid("other")]
    await _kill_agent(run)

    await run.next_run().shells.reattach("t1")

    lived = [is_running(pid) for pid in pids]
    os.kill(pids[1], signal.SIGKILL)
    assert lived == [False, True]


async def test_kept_shells_outlive_the_session_and_belong_to_the_next_one(tmp_path: Path) -> None:
    command = "echo $$ > pid; echo one; until [ -e go ]; do sleep 0.05; done; echo two; exec sleep 61.7"
    async with background(tmp_path, keeps=True) as run:
        await run.start(command)
        pid = await run.pid()
        await run.output("sh1")
        await run.shells.close()
        after = run.next_run(keeps=True)
        await after.shells.reattach("t1")
        (run.around.workspace / "go").touch()
        output = (await after.output("sh1")).output
        lived = is_running(pid)

        killed = await after.kill("sh1")

        kept = [ShellContinued("sh1", command)]
        assert (run.events, after.events, lived, is_running(pid)) == (kept, kept, True, False)
        assert output.startswith("two\n[running for")
        assert killed.output == "sh1: ended by bash_kill."


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_a_kept_shell_in_the_sandbox_survives_too(tmp_path: Path, kind: str) -> None:
    async with background(tmp_path, keeps=True) as run:
        run.around.sandbox = sandbox(kind, run.around.workspace)
        await run.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 5")
        await run.shells.close()
        after = run.next_run(keeps=True)
        await after.shells.reattach("t1")
        (run.around.workspace / "go").touch()

        assert await until(lambda: any(isinstance(event, ShellEnded) for event in after.events))
        output = (await after.output("sh1")).output
        assert output.startswith("one\ntwo\n[exit code 5")
        assert (await after.output("sh1")).metadata["exit_code"] == 5


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_a_shell_in_the_sandbox_is_ended_with_all_its_processes(tmp_path: Path, kind: str) -> None:
    async with background(tmp_path) as run:
        run.around.sandbox = sandbox(kind, run.around.workspace)
        await run.start("trap 'echo bye; exit 0' TERM; sleep 61.81 & wait")

        killed = await run.kill("sh1")

        assert killed.output.startswith("sh1: ended by bash_kill.")
        assert (await run.output("sh1")).output.startswith("bye\n[ended by bash_kill]")


async def test_a_shell_whose_sandbox_cannot_be_set_up_does_not_run(tmp_path: Path) -> None:
    async with background(tmp_path) as run:
        box = sandbox("bubblewrap", run.around.workspace)
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho 'no namespaces here' >&2; exit 1\n")
        broken.chmod(0o755)
        backend = box.backend._replace(program=str(broken))
        run.around.sandbox = Sandbox(box.rules, look=lambda: backend)

        result = await run.start("touch ran")

        assert result.error is not None
        assert "could not be set up, and the command did not run: no namespaces here" in result.error
        assert not (run.around.workspace / "ran").exists()


@pytest.mark.slow
async def test_an_end_that_no_call_reported_is_reported_to_the_model(run: Background) -> None:
    await run.start("sleep 0.4; echo out; exit 7")
    await run.start("no-such-thing")
    await run.start(_SLEEPS)
    await run.start(_SLEEPS)
    await run.kill("sh4")
    assert await until(
        lambda: any(event.shell_id == "sh1" for event in run.events if isinstance(event, ShellEnded))
    )

    state = await run.shells.ended("t1")
    await run.output("sh1")
    after = await run.shells.ended("t1")
    await run.shells.close()
    later = run.next_run()

    words = "exit code 7"
    assert (state, after) == ({"sh1": f"{words}  $ sleep 0.4; echo out; exit 7"}, {})
    ended = await later.shells.ended("t1")
    assert {name: how for name, how in ended.items() if name != "sh2"} == {
        "sh3": f"ended with the session that started it  $ {_SLEEPS}"
    }


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (ShellEnding("exited", 0), "exit code 0"),
        (ShellEnding("exited", -9), "killed by signal SIGKILL"),
        (ShellEnding("exited"), "ended, exit code unknown"),
        (ShellEnding("kill", -15), "ended by bash_kill"),
        (ShellEnding("exited_unobserved", 4), "ended unobserved, exit code 4"),
        (ShellEnding("exited_unobserved"), "ended with the program that started it, or later"),
        (ShellEnding("of a later version", 1), "exit code 1"),
    ],
)
def test_every_ending_has_words(ending: ShellEnding, state: str) -> None:
    assert format_ending(ending, ShellReport()) == state


def test_a_time_span_is_shown_in_a_fitting_unit() -> None:
    spans = [format_duration(seconds) for seconds in (-1, 0.4, 119, 120, 7_199, 7_200, 172_800)]

    assert spans == ["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]


def test_the_end_of_a_long_output_is_kept_without_half_characters(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_text("é" * 3000 + "x")

    assert read_spool_end(spool) == "é" * 1999 + "x"
    assert read_spool_end(tmp_path / "none") == ""


def test_escape_sequences_are_removed_from_the_end_of_an_output(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(b"10%\r\x1b[31m20%\x1b[0m\nhalf\n")

    assert read_spool_end(spool) == "20%\nhalf"
