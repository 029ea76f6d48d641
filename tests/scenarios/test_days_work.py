"""A piece of work on the sample project in the chat: searched, read, three files changed, tested, killed, resumed.

The model is a script; everything else is what a user has: a project, a terminal, a process that dies by SIGKILL.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.forked_command import run_forked
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI, Reply
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import until

_SAMPLE = Path(__file__).parents[2] / "docs" / "sample"
_KEYS = "? help"
_CTRL_D = "\x04"

OLD, NEW = "fmt", "format_receipt"
CHANGED = ("receipt.py", "prices.py", "test_receipt.py")
"""The three files that hold the old name."""
TESTS = "python3 -m unittest -v"
_PROMPT = f"{OLD} in receipt.py is a poor name. Call it {NEW} everywhere, and run the tests."

REPLIES: tuple[Reply, ...] = (
    TCS(
        ("c1", "grep", {"pattern": OLD, "output_mode": "files_with_matches"}),
        ("c2", "read_file", {"file_path": CHANGED[0]}),
    ),
    TCS(
        *(
            (
                f"c{number}",
                "edit_file",
                {"file_path": path, "old_string": OLD, "new_string": NEW, "replace_all": True},
            )
            for number, path in enumerate(CHANGED, start=3)
        )
    ),
    TC("c6", "bash", {"command": TESTS, "description": "run the tests"}),
    TXT(f"`{OLD}` is now `{NEW}` in three files, and the tests pass."),
)


def sample_project(folder: Path) -> Path:
    """The sample project under version control, so that what changed can be asked of git."""
    workspace = folder / "receipts"
    shutil.copytree(_SAMPLE, workspace, ignore=shutil.ignore_patterns("__pycache__"))
    (workspace / ".gitignore").write_text("__pycache__/\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "as it was")):
        subprocess.run([*git, *arguments], cwd=workspace, check=True)
    return workspace


@dataclass(frozen=True)
class ChatProcess:
    """What one process of the chat left behind."""

    ended: int
    """Its exit code, or the negative signal that killed it."""
    screen: str
    """Everything it wrote to the terminal."""


class DaysWork:
    """The work, played as far as asked; `server` answers as the model."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.workspace = sample_project(folder)
        self._home = folder / "home"
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {
            **os.environ,
            "PATH": programs,
            "GRAPH_AGENT_HOME": str(self._home),
            "GRAPH_AGENT_BASE_URL": server.base_url,
            "GRAPH_AGENT_MODEL": "scripted",
            "OPENAI_API_KEY": "any",
        }

    def until_killed(self) -> ChatProcess:
        """Ask, approve three edits and the tests, and kill the chat while the tests run."""
        chat = self._chat("chat", "--thread", "rename")
        chat.plays("> ", f"<{_PROMPT}")
        for path in CHANGED:
            chat.plays(path, _KEYS, "<y")
        chat.plays("runs a script", _KEYS, "<y")
        until(lambda: "... ok" in self._written_by_commands())
        chat.signals(signal.SIGKILL)
        return ChatProcess(chat.ends(), chat.output)

    def resumed(self) -> ChatProcess:
        """Resume, end what still runs, run the tests again, read the answer."""
        chat = self._chat("resume", "rename")
        chat.plays("outcome unknown", "c cancel")
        if "e end processes" in chat.output:  # Without a sandbox the tests outlive the chat.
            chat.plays("<e", "c cancel")
        chat.plays("<r", "the tests pass", "> ", f"^{_CTRL_D}")
        return ChatProcess(chat.ends(), chat.output)

    def git(self, *arguments: str) -> list[str]:
        """The lines git prints in the project."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.workspace, capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout.splitlines()

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another process of the program."""
        return run_forked(arguments, self.workspace, self._environment, "")

    def _written_by_commands(self) -> str:
        spools = (self._home / "data" / "graph-agent.db.blobs" / "spool").rglob("*.out")
        return "".join(path.read_text(errors="replace") for path in spools)

    def _chat(self, *arguments: str) -> PtyProgram:
        return PtyProgram(["-m", "graph_agent", *arguments], self.workspace, self._environment)


@pytest.mark.timeout(120)
def test_three_files_are_changed_and_tested_in_the_chat_across_a_kill(tmp_path: Path) -> None:
    with FakeOpenAI(REPLIES, strict=True, by_history=True) as server:
        work = DaysWork(tmp_path, server)
        killed = work.until_killed()
        resumed = work.resumed()
        calls = json.loads(work.command("calls", "rename", "--json").stdout)["calls"]

    assert (killed.ended, resumed.ended, server.faults, len(server.bodies)) == (-9, 0, [], len(REPLIES))
    assert [(call["tool_name"], call["status"], call["attempt"]) for call in calls] == [
        ("grep", "success", 1),
        ("read_file", "success", 1),
        *[("edit_file", "success", 1)] * 3,
        ("bash", "success", 2),
    ]
    assert work.git("diff", "--name-only") == sorted(CHANGED)
    changed = [line[1:] for line in work.git("diff", "-U0") if line.startswith("-") and not line.startswith("---")]
    added = [line[1:] for line in work.git("diff", "-U0") if line.startswith("+") and not line.startswith("+++")]
    assert added == [line.replace(OLD, NEW) for line in changed]
    assert "Ran 2 tests" in str(calls[-1]["result"])
    assert [path for path in CHANGED if OLD in (work.workspace / path).read_text()] == []
