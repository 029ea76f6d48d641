from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.background import Background, background
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import is_running
from tools.base import InterruptedCall, Limits, Reconciliation
from tools.shell_ops.background_tools import BashKillTool, BashOutputTool

EXAMPLE_CALLS = {
    "bash_output": ExampleCalls({"id": "sh1"}, {"id": "sh9"}),
    "bash_kill": ExampleCalls({"id": "sh1"}, {"id": "sh9"}),
    "bash_list": ExampleCalls({}, None),
}


@pytest.fixture
async def shells(tmp_path: Path) -> AsyncIterator[Background]:
    async with background(tmp_path) as shells:
        yield shells


def _let_on(shells: Background, step: str) -> None:
    (shells.around.workspace / step).touch()


async def test_each_call_shows_the_output_since_the_last_one(shells: Background) -> None:
    await shells.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3")
    first = await shells.output("sh1")
    _let_on(shells, "go")
    second = await shells.output("sh1")
    third = await shells.output("sh1")

    code = "[exit code 3]"
    assert first.output == "one\n[running for 0 s]"
    assert (second.output, third.output) == (f"two\n{code}", f"(no new output)\n{code}")
    assert (third.error, third.metadata | {"output_bytes": 0}) == (
        None,
        {"shell": "sh1", "is_running": False, "exit_code": 3, "output_bytes": 0},
    )


async def test_an_interrupted_call_that_is_repeated_loses_nothing(shells: Background) -> None:
    await shells.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two")
    await shells.output("sh1", call="r1")
    _let_on(shells, "go")
    await shells.output("sh1", call="r2")

    again = await shells.next_run().output("sh1", call="r2")

    assert again.output.startswith("two\n[exit code 0")


@pytest.mark.slow
async def test_it_waits_a_moment_for_new_output(shells: Background) -> None:
    await shells.start("until [ -e go ]; do sleep 0.05; done; sleep 0.4; echo late; sleep 61")
    _let_on(shells, "go")

    assert (await shells.output("sh1")).output.startswith("late\n[running for")


async def test_a_character_is_not_split(shells: Background) -> None:
    await shells.start("printf 'caf\\303'; until [ -e go ]; do sleep 0.05; done; printf '\\251'; sleep 61")
    first = (await shells.output("sh1")).output
    _let_on(shells, "go")
    second = (await shells.output("sh1")).output

    assert (first.split("\n")[0], second.split("\n")[0]) == ("caf", "é")


async def test_long_output_is_cut_in_the_middle_and_can_be_read_in_full(tmp_path: Path) -> None:
    async with background(tmp_path, limits=Limits(result_chars=500)) as shells:
        await shells.start("seq 1 400000")
        result = await shells.output("sh1")

    lines = result.output.splitlines()
    assert (lines[0], lines[-2], lines[-1], len(result.output) < 1_000) == ("1", "400000", "[exit code 0]", True)
    assert shells.blobs.get(result.metadata["blob"]).startswith(b"1\n2\n3\n")


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("read a < /dev/tty || exit 9", ["without a terminal and without input"]),
        ("echo 'unclosed", ["unexpected EOF"]),
    ],
)
async def test_hints_are_shown_and_nothing_that_preceded_the_command(
    shells: Background, command: str, parts: list[str]
) -> None:
    await shells.start(command)

    output = (await shells.output("sh1")).output
    assert ("trap" in output, [part for part in parts if part not in output]) == (False, [])


async def test_what_is_shown_of_an_ended_removed_or_foreign_shell(shells: Background) -> None:
    await shells.start("echo out; exit 2")
    state = "exit code 2"

    killed = await shells.kill("sh1")
    foreign = await shells.output("sh1", thread="t2")
    shells.blobs.drop_spools("t1")
    removed = await shells.output("sh1")

    assert killed.output == f"sh1: {state}. bash_output shows the 4 bytes not read yet."
    assert foreign.metadata["error_type"] == "not_found"
    assert removed.output == f"(its output was removed)\n[{state}]"


@pytest.mark.parametrize("shell", ["sh9", "nonsense", "", "sh1 ; x", "sh99999999999999999999"])
async def test_an_unknown_id_is_answered_with_the_known_ones(shells: Background, shell: str) -> None:
    await shells.start("true")

    assert (await shells.output(shell)).error == f"This thread has no background shell {shell!r}: it has sh1."


async def test_without_a_session_there_are_no_background_shells(tmp_path: Path) -> None:
    result = await BashOutputTool().execute(id="sh1", context=ToolEnvironment(tmp_path).context())

    assert result.error == "Background shells are not available here; run the command without background."


@pytest.mark.slow
async def test_a_shell_ends_with_processes_that_ignore_sigterm_or_left_its_session(
    shells: Background,
) -> None:
    await shells.start(
        "trap '' TERM; echo $$ > pid; setsid sleep 61.1 & echo $! > other; while :; do sleep 0.1; done"
    )
    pids = [await shells.pid(), await shells.pid("other")]

    result = await shells.kill("sh1")

    assert (result.output, [is_running(pid) for pid in pids]) == ("sh1: ended by bash_kill.", [False, False])
    assert shells.events == []


async def test_the_outcome_is_reconciled_after_the_agent_was_killed(shells: Background) -> None:
    tool = BashKillTool()
    tool.shells = shells.shells
    call = InterruptedCall({"id": "sh1"})
    before = await tool.reconcile(call)
    await shells.start("sleep 61.2")
    running = await tool.reconcile(call)
    await shells.kill("sh1")

    assert (before, running, await tool.reconcile(call)) == (
        Reconciliation("unknown", "There is no background shell 'sh1' here."),
        Reconciliation("not_applied", "sh1 is still running."),
        Reconciliation("already_applied", "sh1 has ended: ended by bash_kill."),
    )


async def test_a_shell_of_another_thread_is_not_ended(shells: Background) -> None:
    await shells.start("echo $$ > pid; sleep 61.3")

    refused = await shells.kill("sh1", thread="t2")

    told = "This thread has no background shell 'sh1': it has none; bash with background=true starts one."
    assert (refused.error, is_running(await shells.pid())) == (told, True)


async def test_each_shell_has_a_line_with_its_state_and_unread_bytes(tmp_path: Path) -> None:
    async with background(tmp_path) as shells:
        await shells.start("echo out; exit 2")
        await shells.start("sleep 61.1\n# for a while")
        await shells.start("true", thread="t2")

        result = await shells.listed()

    first, second = result.output.splitlines()
    told = "sh1  exit code 2, 4 bytes not read yet"
    assert first == f"{told}  $ echo out; exit 2"
    assert (second.startswith("sh2  running for "), second.endswith("  $ sleep 61.1…")) == (True, True)
    assert result.display == "1 running, 1 ended"
