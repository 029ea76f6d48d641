import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.sandboxes import sandbox
from tests.fakes.tool_ports import MemoryProcesses, ToolEnvironment
from tests.fakes.waiting import is_running, names_in, until
from tools.base import Limits, ToolContext, ToolResult
from tools.shell_ops.bash import BashTool

EXAMPLE_CALLS = {
    "bash": ExampleCalls({"command": "true"}, {"command": "exit 1"}, writes_in="spools/"),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


@pytest.fixture(params=["unsandboxed", "bubblewrap"])
def each_around(request: pytest.FixtureRequest, around: ToolEnvironment) -> ToolEnvironment:
    """Once without a sandbox and once with one: the results are the same."""
    if request.param == "bubblewrap":
        around.sandbox = sandbox("bubblewrap", around.workspace)
    return around


async def _bash(
    around: ToolEnvironment, command: str, *, limit: float = 20, working_directory: str = "", **context: Any
) -> ToolResult:
    return await BashTool().execute(
        command=command, timeout=limit, working_directory=working_directory, context=around.context(**context)
    )


async def _pid_is_gone(around: ToolEnvironment) -> bool:
    pid = int((around.workspace / "pid").read_text())
    return await until(lambda: not is_running(pid))


async def test_the_result_has_the_output_of_both_streams_and_the_exit_code(around: ToolEnvironment) -> None:
    result = await _bash(around, "echo out; echo err >&2; exit 3")
    success = await _bash(around, "true", call_id="c2")

    status = "exit code 3"
    expected = {"error_type": "execution", "output_bytes": 8, "exit_code": 3, "seconds": 0}
    assert (result.output, result.error) == (f"out\nerr\n[{status}]", f"The command failed: {status}.")
    assert result.metadata | {"seconds": 0} == expected
    assert (success.output, success.error, success.display) == ("(no output)\n[exit code 0]", None, "exit code 0")


_FAILED = "[exit code 0; an earlier command failed with exit code 1: sh -c 'exit 1']"
_PIPELINE = "in the pipeline, command"
_EARLIER_PIPELINE = "[exit code 0; in an earlier pipeline, command 1 of 2 failed with exit code 1]"
_NO_INPUT = "[commands run without a terminal and without input"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3]"),
        ("true", "(no output)\n[exit code 0]"),
        ("printf 'ok\\360\\n'", "ok\ufffd\n[exit code 0]"),
        ("kill -9 $$", "(no output)\n[killed by signal SIGKILL]"),
        ("sh -c 'kill -SEGV $$'", "exit code 139, which usually means signal SIGSEGV]"),
        ("exit 137", "(no output)\n[exit code 137, which usually means signal SIGKILL]"),
        ("exec sh -c 'exit 137'", "(no output)\n[exit code 137, which usually means signal SIGKILL]"),
        ("trap '' EXIT; exit 137", "(no output)\n[exit code 137, which usually means signal SIGKILL]"),
        ("if; then", "bash: -c: line 1: syntax error near unexpected token `;'"),
        ("if; then", "`if; then'"),
        ("sh -c 'exit 1' 2>&1 | tail -5", f"[exit code 0; {_PIPELINE} 1 of 2 failed with exit code 1"),
        ("true | sh -c 'exit 4' | (exit 5) | cat", f"{_PIPELINE} 2 of 4 failed with exit code 4 and command 3"),
        ("sh -c 'exit 1' | cat; echo done", _EARLIER_PIPELINE),
        ("for i in 1 2; do sh -c 'exit 1' | cat; done; echo", _EARLIER_PIPELINE),
        ("sh -c 'exit 1'; echo done", _FAILED),
        ("sh -c 'exit 1'\necho done", _FAILED),
        ("(sh -c 'exit 1'; echo done)", _FAILED),
        ("f() { sh -c 'exit 1'; echo done; }; f", _FAILED),
        ("sh -c 'exit 1'; exit 3", "[exit code 3; an earlier command failed with exit code 1: sh -c 'exit 1']"),
        ("echo a; echo b", "a\nb\n[exit code 0]"),
        ("sh -c 'exit 4' || true", "(no output)\n[exit code 0; an earlier command failed with exit code 4]"),
        ("sh -c 'exit 4' || :; echo b", "b\n[exit code 0; an earlier command failed with exit code 4]"),
        ("sh -c 'exit 4' || echo b", "b\n[exit code 0]"),
        ("sh -c 'exit 4' & wait; true", "[exit code 0; how its background processes ended is not known]"),
        ("set -eu; IFS=,; sh -c 'exit 4' | cat; echo b", _EARLIER_PIPELINE.replace("code 1", "code 4")),
        ("set -u; sh -c 'exit 1'; echo b", _FAILED),
        ("if sh -c 'exit 1'; then echo; fi; echo b", "b\n[exit code 0]"),
        ("yes | head -n 1", "y\n[exit code 0]"),
        ("echo a | cat; false", "a\n[exit code 1]"),
        ("sh -c 'exit 1' | cat; echo ${PIPESTATUS[*]}", "1 0\n"),
        ("mkdir .; echo $_", "exists\n.\n"),
        ("sh -c 'exit 1' | cat; echo a b; echo $_", "a b\nb\n"),
        ("cat; read x; echo got=$x", "got=\n[exit code 0"),
        ("read -p 'Password: ' x; echo got=$x", "got=\n[exit code 0"),
        ('python3 -c "input()"', _NO_INPUT),
        ("read a < /dev/tty || exit 9; echo $a", f"]\n{_NO_INPUT}"),
        ("echo 'top: failed tty get' >&2; exit 1", _NO_INPUT),
        ("echo 'Vim: Warning: Input is not from a terminal'; exit 1", _NO_INPUT),
        ("printf 'package name: (demo) '; exit 1", _NO_INPUT),
        ("printf 'Overwrite? '; read x || exit 1", _NO_INPUT),
    ],
)  # fmt: skip
async def test_output_exit_codes_signals_and_hints(each_around: ToolEnvironment, command: str, part: str) -> None:
    began = time.monotonic()

    assert part in (await _bash(each_around, command)).output
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("printf 'Done: '", "without input"),
        ("echo 'error: bad'; exit 1", "without input"),
        ("if; then", "PIPESTATUS"),
        ("set -v; false | true; exit 3", "PIPESTATUS"),
        ("set -x; false | true; exit 3", "PIPESTATUS"),
        ("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- 10>&- 11>&- 12>&- 13>&- 14>&- 15>&-; true", "descriptor"),
        ("mkdir d; cd d; rmdir ../d", "getcwd"),
        ("ps -o args= -p $$ || cat /proc/$$/cmdline", "PIPESTATUS"),
        ("echo one > >(cat > copy)", "ended with the call"),
        ("true", "ended with the call"),
        ("sleep 0.05 & echo one", "ended with the call"),
    ],
)
async def test_there_is_no_note_without_need(each_around: ToolEnvironment, command: str, absent: str) -> None:
    result = await _bash(each_around, command)

    assert absent not in result.output
    assert "ended_processes" not in result.metadata


async def test_the_environment_has_no_keys_and_turns_off_interaction(
    around: ToolEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    output = (await _bash(around, "env")).output

    assert {"CI=1", "GIT_TERMINAL_PROMPT=0", "PAGER=cat"} <= set(output.splitlines())
    assert "sk-secret" not in output


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
    ids=["job", "silent", "nohup", "own-group", "own-session", "orphan", "no-mark", "daemon"],
)
async def test_background_children_neither_delay_the_call_nor_outlive_it(
    around: ToolEnvironment, command: str
) -> None:
    began = time.monotonic()

    result = await _bash(around, command)

    assert (result.error, time.monotonic() - began < 5) == (None, True)
    assert "[it left processes running, which were ended with the call: " in result.output
    assert await _pid_is_gone(around)


async def test_of_many_leftover_processes_some_are_named_and_all_are_ended(around: ToolEnvironment) -> None:
    result = await _bash(around, "(sleep 60; true) & for n in 1 2 3 4 5 6; do sleep 60 & done; jobs -p > pids")

    named = result.output.rpartition("ended with the call: ")[2]
    assert named.startswith("/bin/bash --noprofile --norc -c (sleep 60; true) & for")
    assert named.endswith(" and 3 more]")
    pids = map(int, (around.workspace / "pids").read_text().split())
    assert await until(lambda: not any(map(is_running, pids)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "echo before; sleep 60 & echo $! > pid; wait",
        "echo before; trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done",
        "echo before; env -i setsid -f sh -c 'trap \"\" TERM; echo $$ > pid; sleep 60' >/dev/null 2>&1; sleep 60",
    ],
    ids=["whole-group", "ignores-term", "other-session"],
)
async def test_a_command_over_its_time_is_ended_with_all_it_started(around: ToolEnvironment, command: str) -> None:
    result = await _bash(around, command, limit=0.5)

    assert result.metadata["error_type"] == "timeout"
    assert result.output.startswith("before\n[stopped after 0.5 seconds, its time limit;")
    assert await _pid_is_gone(around)


async def test_a_cancellation_ends_the_whole_group_and_keeps_the_partial_output(around: ToolEnvironment) -> None:
    pid = around.workspace / "pid"
    task = asyncio.ensure_future(_bash(around, "echo started; sleep 60 & echo $! > pid; wait"))
    await until(lambda: pid.exists() and pid.read_text() != "")

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _pid_is_gone(around)
    assert around.blobs.spool("t1", "c1", 1).read_text() == "started\n"


async def test_the_command_waits_until_its_group_is_recorded(each_around: ToolEnvironment) -> None:
    await _bash(each_around, "touch witness; sleep 0.2")

    ((call_id, attempt, group, started),) = each_around.processes.recorded
    assert (call_id, attempt, each_around.processes.had_run) == ("c1", 1, [False])
    assert (group > 1, started.isdigit(), (each_around.workspace / "witness").exists()) == (True, True, True)


class _Unable(MemoryProcesses):
    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        await super().record(context, group, start_time)
        raise OSError("disk full")


async def test_a_command_whose_group_cannot_be_recorded_never_runs(each_around: ToolEnvironment) -> None:
    call_log, began = _Unable(), time.monotonic()

    result = await _bash(each_around, "touch witness", processes=call_log)

    assert "disk full" in str(result.error)
    assert (names_in(str(each_around.workspace)), time.monotonic() - began < 2) == ([], True)
    assert not is_running(call_log.recorded[0][2])


async def test_output_is_reported_while_the_command_runs(around: ToolEnvironment) -> None:
    task = asyncio.ensure_future(_bash(around, "echo one; sleep 0.5; echo two"))
    await until(lambda: around.output != [])
    early = list(around.output)
    await task

    assert (early, "".join(around.output)) == (["one\n"], "one\ntwo\n")


@pytest.mark.parametrize("command", ["cd sub", "cd sub; exit 4"])
async def test_a_changed_folder_is_kept_and_named(each_around: ToolEnvironment, command: str) -> None:
    sub = each_around.workspace / "sub"
    sub.mkdir()

    first = await _bash(each_around, command)
    second = await _bash(each_around, "pwd", cwd=Path(first.metadata["cwd"]), call_id="c2")

    assert first.output.endswith(f"[working directory is now {sub}]")
    assert (second.output, "cwd" in second.metadata) == (f"{sub}\n[exit code 0]", False)


async def test_a_folder_outside_the_workspace_is_not_kept(around: ToolEnvironment) -> None:
    result = await _bash(around, "cd /")

    note = f"[the shell ended outside the workspace, in /; the next one starts in {around.workspace}]"
    assert ("cwd" in result.metadata, result.output.endswith(note)) == (False, True)


async def test_a_working_directory_applies_to_its_call_only(around: ToolEnvironment) -> None:
    (around.workspace / "sub").mkdir()

    result = await _bash(around, "pwd", working_directory="sub")
    lost = await _bash(around, "pwd", cwd=around.workspace / "gone", call_id="c2")

    assert (result.output, "cwd" in result.metadata) == (f"{around.workspace / 'sub'}\n[exit code 0]", False)
    assert lost.output.splitlines()[0] == str(around.workspace)


@pytest.mark.parametrize(
    ("command", "working_directory", "kind"),
    [
        ("touch witness", "..", "permission"),
        ("touch witness", "/", "permission"),
        ("touch witness", "none", "not_found"),
        ("", "", "validation"),
        (" \n", "", "validation"),
        ("touch witness\0b", "", "validation"),
        (f"touch witness; echo {'x' * 200_000}", "", "execution"),
    ],
    ids=["above", "root", "missing", "empty", "blank", "nul", "too-long"],
)
async def test_an_impossible_call_is_refused_and_leaves_nothing(
    around: ToolEnvironment, command: str, working_directory: str, kind: str
) -> None:
    before = len(names_in("/proc/self/fd"))

    result = await _bash(around, command, working_directory=working_directory)

    assert result.metadata == {"error_type": kind}
    assert (names_in(around.workspace), len(names_in("/proc/self/fd"))) == ([], before)


async def test_descriptors_are_closed(each_around: ToolEnvironment) -> None:
    await _bash(each_around, "true")
    before = len(names_in("/proc/self/fd"))

    await _bash(each_around, "true")

    # What tests before this one left is given back meanwhile, too.
    assert len(names_in("/proc/self/fd")) <= before


async def test_long_output_is_shortened_and_can_be_read_in_full(around: ToolEnvironment) -> None:
    result = await _bash(around, "seq 1 100000")

    assert (len(result.output) < 32_000, result.output.startswith("1\n2\n")) == (True, True)
    assert "\n100000\n[exit code 0]" in result.output
    assert around.blobs.get(result.metadata["blob"]).endswith(b"99999\n100000\n")


@pytest.mark.parametrize("is_partial_free_supported", [True, False])
async def test_a_command_may_write_as_much_as_it_likes_and_its_middle_is_counted(
    around: ToolEnvironment, monkeypatch: pytest.MonkeyPatch, *, is_partial_free_supported: bool
) -> None:
    if not is_partial_free_supported:
        monkeypatch.setattr("tools.shell_ops.output._free", lambda *_: False)
    size = 3_000_000 + len("first\nlast\n")
    command = "echo first; for i in 1 2 3; do head -c 1000000 /dev/zero | tr '\\0' x; sleep 0.1; done; echo last"

    result = await _bash(around, command, limits=Limits(spool_bytes=500_000))

    blob = around.blobs.get(result.metadata["blob"])
    found = re.search(rb"\n\[(\d+) bytes of the output were not kept\]\n", blob)
    assert found is not None
    assert len(blob) - len(found[0]) + int(found[1]) == size == result.metadata["output_bytes"]
    assert (result.error, result.output[:6], "last\n[exit code 0]" in result.output) == (None, "first\n", True)
    assert f"whole output has {size} bytes; {int(found[1])} bytes from its middle were not kept;" in result.output
    assert around.blobs.spool("t1", "c1", 1).stat().st_blocks * 512 <= 520_000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "make\nmake test"}, "$ make (+1 line)"),
        ({"command": "make", "description": "Build\n it"}, "$ make  # Build it"),
        ({"command": "serve\n", "background": True, "description": ""}, "in the background $ serve"),
    ],
)
def test_the_user_sees_the_first_line_of_a_command_and_what_it_is_for(arguments: dict[str, Any], line: str) -> None:
    assert BashTool().display_call(arguments) == line


async def test_a_command_keeps_the_limit_for_all_tools_and_returns_what_it_wrote(around: ToolEnvironment) -> None:
    result = await _bash(around, "echo begun; sleep 60", limits=Limits(call_s=0.5))

    stopped = "[stopped after 0.5 seconds, its time limit; what it did until then is not undone]"
    assert (result.output, result.metadata["error_type"]) == (f"begun\n{stopped}", "timeout")


async def test_the_shell_may_be_in_a_further_folder_of_the_thread(around: ToolEnvironment, tmp_path: Path) -> None:
    lib = tmp_path.resolve() / "lib"
    lib.mkdir()

    stays = await _bash(around, f"cd {lib}", roots=(lib,))
    starts = await _bash(around, "pwd", working_directory=str(lib), roots=(lib,))
    refused = await _bash(around, "pwd", working_directory=str(lib))

    assert (stays.metadata["cwd"], starts.output.splitlines()[0]) == (str(lib), str(lib))
    assert "is outside the workspace" in str(refused.error)
