import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.waiting import is_running

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


def test_a_command_never_runs_when_the_agent_is_killed_before_it_is_let_go(tmp_path: Path) -> None:
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
