from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.background import Background, background
from tests.fakes.waiting import is_running
from tools.base import InterruptedCall, Reconciliation
from tools.shell_ops.bash_kill import BashKillTool

EXAMPLE_CALLS = {
    "bash_kill": ExampleCalls({"id": "sh1"}, {"id": "sh9"}),
}


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Background]:
    async with background(tmp_path) as life:
        yield life


async def test_a_shell_ends_with_processes_that_ignore_sigterm_or_left_its_session(life: Background) -> None:
    await life.start(
        "trap '' TERM; echo $$ > pid; setsid sleep 61.1 & echo $! > other; while :; do sleep 0.1; done"
    )
    pids = [await life.pid(), await life.pid("other")]

    result = await life.kill("sh1")

    assert (result.output, [is_running(pid) for pid in pids]) == ("sh1: ended by bash_kill.", [False, False])
    assert life.events == []


async def test_a_shell_that_has_ended_is_left_alone(life: Background) -> None:
    await life.start("echo out; exit 2")

    told = "sh1: exit code 2, that of the last command; earlier ones may have failed"
    assert (await life.kill("sh1")).output == f"{told}. bash_output shows the 4 bytes not read yet."


async def test_the_outcome_is_reconciled_after_the_agent_was_killed(life: Background) -> None:
    tool = BashKillTool()
    tool.shells = life.shells
    call = InterruptedCall({"id": "sh1"})
    before = await tool.reconcile(call)
    await life.start("sleep 61.2")
    running = await tool.reconcile(call)
    await life.kill("sh1")

    assert (before, running, await tool.reconcile(call)) == (
        Reconciliation("unknown", "There is no background shell 'sh1' here."),
        Reconciliation("not_applied", "sh1 is still running."),
        Reconciliation("already_applied", "sh1 has ended: ended by bash_kill."),
    )


async def test_a_shell_of_another_thread_is_not_ended(life: Background) -> None:
    await life.start("echo $$ > pid; sleep 61.3")

    refused = await life.kill("sh1", thread="t2")

    told = "This thread has no background shell 'sh1': it has none; bash with background=true starts one."
    assert (refused.error, is_running(await life.pid())) == (told, True)
