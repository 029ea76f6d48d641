import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import MemoryProcesses, ToolSurroundings
from tests.fakes.waiting import is_running, names_in, until
from tools.base import Limits, ToolContext, ToolResult
from tools.shell_ops.bash import BashTool

EXAMPLE_CALLS = {
    "bash": ExampleCalls({"command": "true"}, {"command": "exit 1"}, writes_in="spools/"),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolSurroundings:
    return ToolSurroundings(tmp_path)


async def _bash(
    around: ToolSurroundings, command: str, *, limit: float = 20, working_directory: str = "", **context: Any
) -> ToolResult:
    return await BashTool().execute(
        command=command, timeout=limit, working_directory=working_directory, context=around.context(**context)
    )


_DAEMON = """
import os, pathlib, time
for _ in range(2):
    if os.fork(): os._exit(0)
    os.setsid()
os.closerange(0, 256)
pathlib.Path("pid").write_text(str(os.getpid()))
time.sleep(62)
"""
"""Sheds session, parents and open files, as real daemons do."""


async def _gone(pid: int) -> bool:
    return await until(lambda: not is_running(pid))


async def test_the_result_has_the_output_of_both_streams_and_the_exit_code(around: ToolSurroundings) -> None:
    result = await _bash(around, "echo out; echo err >&2; exit 3")

    assert result.output == "out\nerr\n[exit code 3, that of the last command; earlier ones may have failed]"
    assert (
        result.error == "The command failed: exit code 3, that of the last command; earlier ones may have failed."
    )
    assert result.metadata | {"seconds": 0} == {
        "error_type": "execution",
        "output_bytes": 8,
        "exit_code": 3,
        "seconds": 0,
    }


async def test_a_success_has_no_notes(around: ToolSurroundings) -> None:
    result = await _bash(around, "true")

    assert (result.output, result.error, result.display) == ("(no output)\n[exit code 0]", None, "exit code 0")


@pytest.mark.parametrize(
    "command",
    ["sh t.sh 2>&1 | tail -5", "sh t.sh; echo done", "sh t.sh || true", "sh t.sh\necho done", "sh t.sh & wait"],
)
async def test_a_hidden_failure_is_never_reported_as_a_success(around: ToolSurroundings, command: str) -> None:
    (around.workspace / "t.sh").write_text("echo 2 failed; exit 1\n")

    result = await _bash(around, command)

    assert "[exit code 0, that of the last command; earlier ones may have failed]" in result.output


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("kill -9 $$", "killed by signal SIGKILL"),
        ("sh -c 'kill -SEGV $$'", "exit code 139, which usually means signal SIGSEGV"),
    ],
)
async def test_a_signal_is_named(around: ToolSurroundings, command: str, told: str) -> None:
    assert f"[{told}]" in (await _bash(around, command)).output


@pytest.mark.parametrize("command", ["cat", "read -p 'Password: ' x; echo got=$x", 'python3 -c "input()"'])
async def test_stdin_is_empty(around: ToolSurroundings, command: str) -> None:
    began = time.monotonic()

    await _bash(around, command)

    assert time.monotonic() - began < 3


async def test_a_program_that_wants_a_terminal_fails_with_a_hint(around: ToolSurroundings) -> None:
    result = await _bash(around, "read a < /dev/tty || exit 9; echo $a")

    assert result.metadata["exit_code"] == 9
    assert "[commands run without a terminal and without input" in result.output


@pytest.mark.parametrize(
    "command",
    [
        "echo 'top: failed tty get' >&2; exit 1",
        "echo 'Vim: Warning: Input is not from a terminal'; exit 1",
        "printf 'package name: (demo) '; exit 1",
        "printf 'Overwrite? '; read x || exit 1",
    ],
)
async def test_a_program_that_asked_a_question_gets_a_hint(around: ToolSurroundings, command: str) -> None:
    assert "[commands run without a terminal and without input" in (await _bash(around, command)).output


@pytest.mark.parametrize("command", ["printf 'Done: '", "echo 'error: bad'; exit 1"])
async def test_output_that_only_looks_like_a_question_gets_no_hint(around: ToolSurroundings, command: str) -> None:
    assert "without input" not in (await _bash(around, command)).output


async def test_the_environment_has_no_keys_and_turns_off_interaction(
    around: ToolSurroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    result = await _bash(around, "env")

    lines = set(result.output.splitlines())
    assert {"CI=1", "GIT_TERMINAL_PROMPT=0", "PAGER=cat"} <= lines
    assert "sk-secret" not in result.output


@pytest.mark.parametrize(
    "command",
    [
        "sleep 61.5 & echo $! > pid",
        "sleep 61.6 >/dev/null 2>&1 & echo $! > pid",
        "nohup timeout 77 sleep 61.7 & sleep 0.2; pgrep -n -f 'sleep 61.7' > pid",
        "set -m; sleep 61.8 & echo $! > pid",
        "setsid -f sh -c 'echo $$ > pid; exec sleep 61.9'; sleep 0.2",
        "(setsid sh -c 'echo $$ > pid; exec sleep 62.1' >/dev/null 2>&1 &) ; sleep 0.2",
        "env -i setsid -f sh -c 'echo $$ > pid; exec sleep 62.2' >/dev/null 2>&1; sleep 0.2",
        f"python3 -c '{_DAEMON}'; sleep 0.4",
    ],
)
async def test_background_children_neither_delay_the_call_nor_outlive_it(
    around: ToolSurroundings, command: str
) -> None:
    began = time.monotonic()

    result = await _bash(around, command)

    assert (result.error, time.monotonic() - began < 5) == (None, True)
    assert "[it left processes running, which were ended with the call: " in result.output
    assert await _gone(int((around.workspace / "pid").read_text()))


async def test_a_command_over_its_time_is_ended_with_its_whole_group(around: ToolSurroundings) -> None:
    result = await _bash(around, "echo before; sleep 60 & echo $! > pid; wait", limit=0.5)

    assert result.metadata["error_type"] == "timeout"
    assert result.output.startswith("before\n[stopped after 0.5 seconds, its time limit;")
    assert await _gone(int((around.workspace / "pid").read_text()))


async def test_a_command_that_ignores_term_is_killed(around: ToolSurroundings) -> None:
    result = await _bash(around, "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", limit=0.3)

    assert result.metadata["error_type"] == "timeout"
    assert await _gone(int((around.workspace / "pid").read_text()))


async def test_a_cancellation_ends_the_whole_group_and_keeps_the_partial_output(around: ToolSurroundings) -> None:
    task = asyncio.ensure_future(_bash(around, "echo started; sleep 60 & echo $! > pid; wait"))
    await until(lambda: (around.workspace / "pid").exists() and (around.workspace / "pid").read_text() != "")

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _gone(int((around.workspace / "pid").read_text()))
    assert around.blobs.spool("t1", "c1", 1).read_text() == "started\n"


async def test_the_command_waits_until_its_group_is_recorded(around: ToolSurroundings) -> None:
    await _bash(around, "touch witness; sleep 0.2")

    ((call_id, attempt, group, started),) = around.processes.recorded
    assert (call_id, attempt, around.processes.had_run) == ("c1", 1, [False])
    assert group > 1
    assert started.isdigit()
    assert (around.workspace / "witness").exists()


class _Unable(MemoryProcesses):
    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        await super().record(context, group, start_time)
        raise OSError("disk full")


async def test_a_command_whose_group_cannot_be_recorded_never_runs(around: ToolSurroundings) -> None:
    call_log = _Unable()

    with pytest.raises(OSError, match="disk full"):
        await _bash(around, "touch witness", processes=call_log)

    assert not (around.workspace / "witness").exists()
    assert not is_running(call_log.recorded[0][2])


async def test_output_is_reported_while_the_command_runs(around: ToolSurroundings) -> None:
    task = asyncio.ensure_future(_bash(around, "echo one; sleep 0.5; echo two"))
    await until(lambda: around.told != [])
    early = list(around.told)
    await task

    assert (early, "".join(around.told)) == (["one\n"], "one\ntwo\n")


async def test_a_changed_folder_is_kept_and_named(around: ToolSurroundings) -> None:
    (around.workspace / "sub").mkdir()

    first = await _bash(around, "cd sub")
    second = await _bash(around, "pwd", cwd=Path(first.metadata["cwd"]))

    assert first.output.endswith(f"[working directory is now {around.workspace / 'sub'}]")
    assert second.output == f"{around.workspace / 'sub'}\n[exit code 0]"
    assert "cwd" not in second.metadata


async def test_a_folder_is_kept_even_if_the_command_calls_exit(around: ToolSurroundings) -> None:
    (around.workspace / "sub").mkdir()

    result = await _bash(around, "cd sub; exit 4")

    assert result.metadata["cwd"] == str(around.workspace / "sub")


async def test_a_folder_outside_the_workspace_is_not_kept(around: ToolSurroundings) -> None:
    result = await _bash(around, "cd /")

    assert "cwd" not in result.metadata
    assert result.output.endswith(
        f"[the shell ended outside the workspace, in /; the next one starts in {around.workspace}]"
    )


async def test_a_working_directory_applies_to_its_call_only(around: ToolSurroundings) -> None:
    (around.workspace / "sub").mkdir()

    result = await _bash(around, "pwd", working_directory="sub")

    assert result.output == f"{around.workspace / 'sub'}\n[exit code 0]"
    assert "cwd" not in result.metadata


@pytest.mark.parametrize(("given", "kind"), [("..", "permission"), ("/", "permission"), ("none", "not_found")])
async def test_a_working_directory_that_cannot_be_used_is_refused(
    around: ToolSurroundings, given: str, kind: str
) -> None:
    result = await _bash(around, "touch witness", working_directory=given)

    assert result.metadata == {"error_type": kind}
    assert not (around.workspace / "witness").exists()


async def test_a_shell_whose_folder_is_gone_starts_in_the_workspace(around: ToolSurroundings) -> None:
    result = await _bash(around, "pwd", cwd=around.workspace / "gone")

    assert result.output.splitlines()[0] == str(around.workspace)


async def test_undecodable_bytes_are_replaced(around: ToolSurroundings) -> None:
    assert (await _bash(around, "printf 'ok\\360\\n'")).output == "ok\ufffd\n[exit code 0]"


async def test_long_output_is_shortened_and_can_be_read_in_full(around: ToolSurroundings) -> None:
    result = await _bash(around, "seq 1 100000")

    assert len(result.output) < 32_000
    assert result.output.startswith("1\n2\n")
    assert "\n100000\n[exit code 0]" in result.output
    assert around.blobs.get(result.metadata["blob"]).endswith(b"99999\n100000\n")


async def test_a_command_over_the_output_limit_is_stopped(around: ToolSurroundings) -> None:
    result = await _bash(around, "yes", limits=Limits(spool_bytes=2_000_000))

    assert (
        result.error
        == "The command failed: stopped because it wrote more than 2000000 bytes; only those were kept."
    )
    assert around.blobs.spool("t1", "c1", 1).stat().st_size == 2_000_000


async def test_a_syntax_error_quotes_only_the_given_command(around: ToolSurroundings) -> None:
    result = await _bash(around, "if; then")

    assert "trap" not in result.output
    assert "`if; then'" in result.output


@pytest.mark.parametrize("command", ["", " \n", "echo a\0b"])
async def test_an_impossible_command_is_rejected(around: ToolSurroundings, command: str) -> None:
    assert (await _bash(around, command)).metadata == {"error_type": "validation"}


async def test_a_command_longer_than_the_system_takes_is_an_error_and_leaves_no_process(
    around: ToolSurroundings,
) -> None:
    before = len(names_in("/proc/self/fd"))

    result = await _bash(around, f"echo {'x' * 200_000}")

    assert result.metadata == {"error_type": "execution"}
    assert len(names_in("/proc/self/fd")) == before


async def test_descriptors_are_closed(around: ToolSurroundings) -> None:
    await _bash(around, "true")
    before = len(names_in("/proc/self/fd"))

    await _bash(around, "true")

    assert len(names_in("/proc/self/fd")) == before


def test_the_user_sees_the_first_line_of_a_command() -> None:
    assert BashTool().display_call({"command": "make\nmake test"}) == "$ make (+1 lines)"


@pytest.mark.parametrize("command", ["echo one > >(cat > copy)", "true", "sleep 0.05 & echo one"])
async def test_a_process_that_ends_right_after_the_command_is_not_mentioned(
    around: ToolSurroundings, command: str
) -> None:
    result = await _bash(around, command)

    assert "ended with the call" not in result.output
    assert "ended_processes" not in result.metadata


async def test_at_the_time_limit_processes_in_other_sessions_are_ended_too(around: ToolSurroundings) -> None:
    command = "env -i setsid -f sh -c 'trap \"\" TERM; echo $$ > pid; sleep 60; sleep 60' >/dev/null 2>&1; sleep 60"

    result = await _bash(around, command, limit=0.5)

    assert result.metadata["error_type"] == "timeout"
    assert await _gone(int((around.workspace / "pid").read_text()))


async def test_of_many_leftover_processes_some_are_named_and_all_are_ended(around: ToolSurroundings) -> None:
    result = await _bash(around, "(sleep 60; true) & for n in 1 2 3 4 5 6; do sleep 60 & done; jobs -p > pids")

    told = result.output.rpartition("ended with the call: ")[2]
    assert told.startswith("/bin/bash --noprofile --norc -c (sleep 60; true) & for")
    assert told.endswith(" and 3 more]")
    for pid in (around.workspace / "pids").read_text().split():
        assert await _gone(int(pid))


async def test_the_shell_may_be_in_a_further_folder_of_the_thread(around: ToolSurroundings, tmp_path: Path) -> None:
    lib = tmp_path.resolve() / "lib"
    lib.mkdir()

    stays = await _bash(around, f"cd {lib}", roots=(lib,))
    starts = await _bash(around, "pwd", working_directory=str(lib), roots=(lib,))
    refused = await _bash(around, "pwd", working_directory=str(lib))

    assert (stays.metadata["cwd"], starts.output.splitlines()[0]) == (str(lib), str(lib))
    assert "is outside the workspace" in str(refused.error)
