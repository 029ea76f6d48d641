import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

from docs._generate.recording import COLUMNS, normalize, picture, transcript_in
from graph_agent.cli.demo.script import DemoNarrator, run_steps
from graph_agent.cli.demo.workspace import DemoCommands, DemoFailed, DemoWorkspace
from tests.architecture.checkout import ROOT
from tests.fakes.pty_program import PtyProgram

CALL = "call_0123456789abcdef"
AFTER_FIRST, KILLED, DECIDED = "1f-first-00000001", "1f-killed-00000002", "1f-decided-00000003"


@dataclass
class Recorded(DemoCommands):
    """Notes the commands instead of running them; answers as a thread would that was killed once."""

    processes: tuple[int, ...] = ()
    ran: list[str] = field(default_factory=list)
    nodes: tuple[tuple[str, str], ...] = (("1f-end-4", "reasoning"), (DECIDED, "human_approval"), (KILLED, "x"))

    def run(self, *arguments: str, exit_code: int = 0) -> None:
        self.ran.append(" ".join(arguments))

    def show(self, file: str) -> None:
        self.ran.append(f"cat {file}")

    def run_and_kill(self, *arguments: str, **_: Any) -> None:
        self.ran.append(f"KILL {' '.join(arguments)}")

    def read(self, *arguments: str) -> Any:
        was_killed = any(line.startswith("KILL") for line in self.ran)
        return {
            "inspect": {"checkpoint_id": KILLED if was_killed else AFTER_FIRST},
            "approvals": {"approvals": [{"call_id": CALL}]},
            "recover": {"calls": [{"call_id": CALL, "processes": list(self.processes)}]},
            "history": {"checkpoints": [{"checkpoint_id": one, "node": node} for one, node in self.nodes]},
        }[arguments[0]]


class Answers(DemoNarrator):
    def __init__(self, *keys: str) -> None:
        super().__init__(is_asking=False)
        self._keys = list(keys)
        self.messages: list[str] = []

    def say(self, text: str) -> None:
        self.messages.append(text)

    def choose(self, *_: Any) -> str:
        return self._keys.pop(0)


def play(keys: str, **situation: Any) -> tuple[list[str], list[str]]:
    children, guide = Recorded(**situation), Answers(*keys)
    run_steps(DemoWorkspace(Path("nowhere")), children, guide)
    return children.ran, guide.messages


def test_the_demo_runs_its_commands_in_order() -> None:
    ran, _ = play("yd")

    assert ran == [
        "run --thread demo read order.txt",
        "run --resume demo --mode acceptEdits replace open by paid in order.txt, then run sh charge.sh",
        "approvals list",
        "approvals approve 89abcdef",
        "KILL run --resume demo",
        "cat charges.txt",
        "calls demo",
        "inspect demo",
        "recover demo",
        "recover demo --done 89abcdef --result order 17 is charged: its line is in charges.txt",
        "run --resume demo",
        "cat charges.txt",
        "calls demo",
        "history demo --last 8",
        "diff 00000002 00000003",
        "threads diff demo",
        "rewind 00000001 --yes",
        "cat order.txt",
    ]


@pytest.mark.parametrize(
    ("key", "decision", "remark"),
    [("r", "--retry 89abcdef", "Two lines: it ran twice"), ("c", "--cancel 89abcdef", "One line: charged once")],
)
def test_another_recovery_decision_is_applied_and_explained(key: str, decision: str, remark: str) -> None:
    ran, messages = play(f"y{key}")

    assert f"recover demo {decision}" in ran
    assert any(line.startswith(remark) for line in messages)


def test_a_process_that_still_runs_is_ended_with_the_decision() -> None:
    ran, _ = play("yr", processes=(7,))

    assert "recover demo --retry 89abcdef --end-processes" in ran


def test_after_a_rejection_nothing_is_killed() -> None:
    ran, _ = play("n")

    assert ran[3:] == [
        "approvals reject 89abcdef --reason not today",
        "run --resume demo",
        "calls demo",
        "threads diff demo",
        "rewind 00000001 --yes",
        "cat order.txt",
    ]


def test_a_history_without_the_decision_is_an_error() -> None:
    with pytest.raises(DemoFailed, match="no checkpoint with the decision"):
        play("yd", nodes=((KILLED, "x"),))


KEYS = {"r": "[r]etry", "d": "[d]one", "c": "[c]ancel"}


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> DemoNarrator:
    monkeypatch.setattr("sys.stdin", StringIO(text))
    return DemoNarrator(is_asking=True)


def test_without_a_person_the_default_is_chosen_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    key = DemoNarrator(is_asking=False).choose("And now?", KEYS, "d")

    assert (key, capsys.readouterr().out) == ("d", "\nAnd now?\n[r]etry  [d]one  [c]ancel > d\n")


def test_a_person_is_asked_until_a_key_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = typed(monkeypatch, "\nx\nRetry\n").choose("And now?", KEYS, "d")

    assert key == "r"
    assert capsys.readouterr().out.count("Type r, d or c, then Enter.") == 2


def test_a_step_begins_when_the_person_presses_enter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "\n").title("1/2  One.")
    DemoNarrator(is_asking=False).title("2/2  Two.")

    assert capsys.readouterr().out == "\n[Enter] to continue > \n1/2  One.\n\n2/2  Two.\n"


def test_the_end_of_stdin_ends_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(typer.Exit) as leaving:
        typed(monkeypatch, "").choose("And now?", KEYS, "d")

    assert leaving.value.exit_code == 130


def test_explanations_are_wrapped_at_eighty_columns_or_fewer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        DemoNarrator(is_asking=False).say("word " * 40)

    lines = capsys.readouterr().out.split("\n\n")
    assert [max(len(line) for line in part.splitlines()) for part in lines if part.strip()] == [39, 79]


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


@pytest.mark.slow
def test_without_a_terminal_the_demo_matches_the_picture_and_leaves_nothing(short_folder: Path) -> None:
    command = [sys.executable, *DEMO]
    env = {**environment(short_folder), "COLUMNS": str(COLUMNS)}
    shown = subprocess.run(
        command,
        cwd=short_folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    recorded = transcript_in((ROOT / "docs/demo.svg").read_text(encoding="utf-8"))
    played = transcript_in(picture(normalize(shown.stdout)))
    # In a terminal long lines are folded between words.
    assert "".join(played.split()) == "".join(recorded.split()), "run `python -m docs._generate.recording`"
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
        "bash (medium risk: runs a script: sh",
        "interrupted  medium  bash",
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


@pytest.mark.slow
def test_a_person_can_answer_and_leave_early(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_the_demo_ends_silently_when_stdout_is_closed(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_a_signal_also_ends_the_running_command(tmp_path: Path) -> None:
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
