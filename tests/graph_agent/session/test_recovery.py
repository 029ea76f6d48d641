import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from graph_agent.ports import JournalRow
from graph_agent.ports.background import boot_id, process_started
from graph_agent.session.recovery import end_running, explain_refused_retry, process_traces, running_pids
from graph_agent.storage.blobs import FileBlobs
from graph_agent.toolbox.tool_context import ProcessTraces
from tests.fakes.waiting import is_running, until


@pytest.fixture
def started() -> Iterator["ExitStack"]:
    with ExitStack() as stack:
        yield stack


def _command(script: str, started: ExitStack) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(["bash", "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    started.enter_context(process)
    started.callback(subprocess.run, ["pkill", "-KILL", "-s", str(process.pid)], check=False)
    return process


def _row(process: "subprocess.Popen[bytes]") -> JournalRow:
    pid, extra = process.pid, {"boot_id": boot_id()}
    return JournalRow(
        "c1", 1, "owner", "executing", "", process_group=pid, process_started=process_started(pid), extra=extra
    )


def _traces(row: JournalRow) -> tuple[ProcessTraces, ...]:
    return process_traces([row], "t1", FileBlobs(Path(mkdtemp())))


@pytest.mark.slow
async def test_processes_that_a_command_left_running_are_found_and_ended(started: ExitStack) -> None:
    process = _command("trap '' TERM; sleep 60 & echo $!; sleep 60", started)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    row = _row(process)
    found = running_pids(_traces(row))

    left = await end_running(_traces(row))

    process.wait()
    assert ({process.pid, child} <= set(found), left, is_running(child)) == (True, (), False)


async def test_processes_that_outlive_the_leader_of_their_group_are_found(started: ExitStack) -> None:
    process = _command("read -t 0.2 < <(sleep 1); sleep 60 > /dev/null & echo $!", started)
    row = _row(process)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.wait()

    found = running_pids(_traces(row))

    assert child in found
    assert await end_running(_traces(row)) == ()
    assert await until(lambda: not is_running(child))


@pytest.mark.parametrize("other", ["leader", "boot"])
async def test_a_group_of_another_leader_or_boot_is_neither_shown_nor_touched(
    started: ExitStack, other: str
) -> None:
    process = _command("sleep 60", started)
    mine = _row(process)
    row = replace(mine, process_started="1") if other == "leader" else replace(mine, extra={"boot_id": "another"})

    found, left = running_pids(_traces(row)), await end_running(_traces(row))

    assert (found, left, is_running(process.pid), running_pids(_traces(mine))) == ((), (), True, (process.pid,))


async def test_a_row_without_a_process_left_nothing_and_ending_nothing_takes_no_time() -> None:
    assert running_pids(_traces(JournalRow("c1", 1, "owner", "executing", ""))) == ()
    assert await asyncio.wait_for(end_running([]), 0.5) == ()


def test_a_refused_retry_names_the_running_processes() -> None:
    assert explain_refused_retry("c1", (7, 8)) == (
        "Call c1 cannot be retried while processes of its last attempt are running (pid 7, 8). "
        "Wait for them, or end them: `graph-agent recover --retry c1 --end-processes`."
    )
