import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.pty_program import PtyProgram

COMMANDS = re.compile(r"^\$ (?:graph-agent )?(.*)$", re.MULTILINE)
DEMO = ("-m", "graph_agent", "demo")


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder), "GRAPH_AGENT_HOME": str(folder / "untouched"), "NO_COLOR": "1"}


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that work below a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink().is_relative_to(folder):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_without_a_terminal_it_shows_all_of_it_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, *DEMO]
    shown = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    assert [line.split()[0] for line in COMMANDS.findall(shown.stdout)] == [
        *("run", "run", "approvals", "approvals", "run", "kill", "cat", "calls", "inspect"),
        *("recover", "recover", "run", "cat", "calls", "history", "diff", "threads", "rewind", "cat"),
    ]
    for evidence in (
        "bash (high risk) $ sh charge.sh",
        "interrupted  high    bash",
        "  what it wrote until then:\n  │ card charged, waiting for the bank\n",
        "$ cat charges.txt\norder 17: 12.40\n\nOne line: charged once.",
        "- calls.call_",
        "+status: paid",
        "cannot be undone, what they did stays:\n  $ sh charge.sh",
        "$ cat order.txt\norder 17\nstatus: open\n",
    ):
        assert evidence in shown.stdout
    assert "\x1b" not in shown.stdout
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []


def test_a_person_answers_and_may_leave_in_the_middle_of_it(tmp_path: Path) -> None:
    demo = PtyProgram(DEMO, tmp_path, environment(tmp_path))
    for _ in range(2):
        demo.sees("[Enter] goes on > ")
        demo.enters("")
    demo.sees("[y]es  [n]o > ")
    demo.enters("maybe")
    demo.sees("Type y or n, then Enter.")
    demo.enters("y")
    demo.sees("[Enter] goes on > ")
    demo.enters("")
    demo.sees("$ kill -9 ")
    demo.sees("[Enter] goes on > ")
    demo.types("\x03")

    assert demo.ends() == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []


def test_a_signal_while_a_command_runs_ends_that_too(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, *DEMO, "--yes"], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("$ graph-agent run"):
            break
    time.sleep(0.3)
    demo.send_signal(signal.SIGTERM)
    demo.communicate()

    assert demo.returncode == 143
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []
