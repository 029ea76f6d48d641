import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs._generate.recording import COLUMNS, normalize, picture, transcript_in
from tests.architecture.checkout import ROOT
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


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """One whose path no table cuts off."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_without_a_terminal_it_shows_what_the_picture_of_the_readme_shows_and_leaves_nothing(
    short_folder: Path,
) -> None:
    command = [sys.executable, *DEMO]
    surroundings = {**environment(short_folder), "COLUMNS": str(COLUMNS)}
    shown = subprocess.run(
        command,
        cwd=short_folder,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    recorded = transcript_in((ROOT / "docs/demo.svg").read_text(encoding="utf-8"))
    assert transcript_in(picture(normalize(shown.stdout))) == recorded, "run `python -m docs._generate.recording`"
    assert "\x1b" not in shown.stdout
    assert list(short_folder.iterdir()) == []
    assert processes_in(short_folder) == []


def test_the_picture_shows_a_kill_its_evidence_one_charge_and_the_way_back() -> None:
    recorded = transcript_in((ROOT / "docs/demo.svg").read_text(encoding="utf-8"))

    assert [line.split()[0] for line in COMMANDS.findall(recorded)] == [
        *("run", "run", "approvals", "approvals", "run", "kill", "cat", "calls", "inspect"),
        *("recover", "recover", "run", "cat", "calls", "history", "diff", "threads", "rewind", "cat"),
    ]
    for evidence in (
        "bash (high risk) $ sh charge.sh",
        "interrupted  high    bash",
        "  output so far:\n  │ card charged, waiting for the bank\n",
        "$ cat charges.txt\norder 17: 12.40\n\nOne line: charged once.",
        "+status: paid",
        "Cannot be undone; the effects of these calls stay:\n  $ sh charge.sh",
        "$ cat order.txt\norder 17\nstatus: open\n",
    ):
        assert evidence in recorded


def test_stand_ins_differ_where_ids_do_and_short_forms_end_their_long_ones() -> None:
    a, b = "call_" + "a" * 32, "call_" + "b" * 32

    steady = normalize(f"{a} {b} {'a' * 8} {'b' * 8} kill -9 77 took 12 s ago")
    first, second, short_first, short_second, *rest = steady.split()

    assert first != second
    assert (first.endswith(short_first), second.endswith(short_second)) == (True, True)
    assert " ".join(rest) == "kill -9 4100 took just now"
    assert normalize(steady.replace("just now", "3 s ago")) == steady


def test_a_person_answers_and_may_leave_in_the_middle_of_it(tmp_path: Path) -> None:
    demo = PtyProgram(DEMO, tmp_path, environment(tmp_path))
    for _ in range(2):
        demo.sees("[Enter] to continue > ")
        demo.enters("")
    demo.enters("n")
    demo.sees("[y]es  [n]o > ")
    demo.enters("maybe")
    demo.sees("Type y or n, then Enter.")
    demo.enters("y")
    demo.sees("[Enter] to continue > ")
    demo.enters("")
    demo.sees("$ kill -9 ")
    demo.sees("[Enter] to continue > ")
    demo.types("\x03")
    demo.sees("Left early; its files are gone.")

    assert demo.ends() == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []


def test_a_reader_that_goes_away_ends_it_without_a_word(tmp_path: Path) -> None:
    reads_one_line = f"{sys.executable} -m graph_agent demo | head -1"
    done = subprocess.run(
        ["sh", "-c", reads_one_line],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )

    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


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
