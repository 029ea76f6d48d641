import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.waiting import is_running
from tests.scenarios.command import until
from tools.shell_ops.process import (
    CALL_MARK,
    Process,
    ProcessTraces,
    command_line,
    find_processes,
    send_signal,
    start_time,
)

_PROGRAM = """
import os, sys, time
from pathlib import Path
from tools.shell_ops.process import ChildProcess

output = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
report = os.open("/dev/null", os.O_WRONLY)
child = ChildProcess(["/bin/sh", "-c", "echo ran"], cwd=Path("/"), environment={}, output=output, report=report)
print(child.traces.group, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_command_never_runs_if_the_agent_is_killed_before_its_release(tmp_path: Path) -> None:
    output = tmp_path / "output"
    agent = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(output)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert agent.stdout is not None
    group = int(agent.stdout.readline())

    os.kill(agent.pid, signal.SIGKILL)
    agent.communicate()

    deadline = time.monotonic() + 5
    while is_running(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(group)
    assert output.read_text() == ""


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _start(started: ExitStack, *command: str, **options: object) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]  # passed through
    started.callback(process.wait)
    started.callback(process.kill)
    return process  # type: ignore[no-any-return]  # as above


def _pids(traces: ProcessTraces) -> list[int]:
    return [process.pid for process in find_processes(traces)]


_NOW = ProcessTraces(os.getpid(), start_time(os.getpid()))
"""A command that began when this process did, whose group is this one's: it finds by mark and spool alone."""


def _elsewhere(mark: str = "", spool: str = "") -> ProcessTraces:
    return ProcessTraces(2**22 + 1, _NOW.started, mark, spool)


def test_a_process_that_carries_the_mark_belongs_to_the_call_wherever_it_is(started: ExitStack) -> None:
    process = _start(started, "sleep", "60", env={CALL_MARK: "outer,mine"})

    assert (_pids(_elsewhere("mine")), _pids(_elsewhere("outer"))) == ([process.pid], [process.pid])
    assert (_pids(_elsewhere("min")), _pids(_elsewhere("theirs"))) == ([], [])


def test_a_daemon_that_writes_to_the_spool_belongs_to_the_call_and_a_reader_does_not(
    tmp_path: Path,
) -> None:
    spool = (tmp_path / "spool").resolve()
    spool.touch()
    script = (
        f"(setsid sleep 60 >> {spool} & echo $! > writer); (setsid tail -f {spool} > /dev/null & echo $! > reader)"
    )
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    writer, reader = (int((tmp_path / name).read_text()) for name in ("writer", "reader"))

    until(lambda: _pids(_elsewhere(spool=str(spool))) == [writer])

    os.kill(writer, signal.SIGKILL)
    os.kill(reader, signal.SIGKILL)


def test_a_process_with_a_reused_number_is_not_included(started: ExitStack) -> None:
    process = _start(started, "sleep", "60")
    began = start_time(process.pid)

    assert _pids(ProcessTraces(process.pid, began)) == [process.pid]
    assert _pids(ProcessTraces(process.pid, str(int(began) - 1))) == []
    assert (_pids(ProcessTraces(process.pid, "")), start_time(2**22 + 1)) == ([], "")


def test_children_in_sessions_of_their_own_belong_to_a_living_command(started: ExitStack) -> None:
    process = _start(
        started, sys.executable, "-c", "import subprocess; subprocess.run(['setsid', '-w', 'sleep', '60'], env={})"
    )
    traces = ProcessTraces(process.pid, start_time(process.pid))

    until(lambda: len(find_processes(traces)) == 2)

    for one in find_processes(traces):
        send_signal(one, signal.SIGKILL)
    until(lambda: find_processes(traces) == [])


def test_a_signal_reaches_only_the_intended_process(started: ExitStack) -> None:
    process = _start(started, "sleep", "60")
    began = start_time(process.pid)

    send_signal(Process(process.pid, f"{began}0"), signal.SIGKILL)
    was_running = is_running(process.pid)
    send_signal(Process(process.pid, began), signal.SIGKILL)

    assert (was_running, process.wait(timeout=5)) == (True, -signal.SIGKILL)
    send_signal(Process(process.pid, began), signal.SIGKILL)


def test_a_command_line_has_the_process_number(started: ExitStack) -> None:
    process = _start(started, "sleep", "60")
    # While it becomes the program it was started as, a process has no words.
    until(lambda: command_line(process.pid) != f"pid {process.pid}")

    assert command_line(process.pid) == f"sleep 60 (pid {process.pid})"
    assert command_line(2**22 + 1) == f"pid {2**22 + 1}"
