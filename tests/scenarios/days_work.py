"""A piece of real work on this very project, in the chat: searched, read, changed in three files, tested, killed.

The model is a script; everything else is what a user has: a checkout, a terminal, a process that dies by SIGKILL.
"""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI, Reply
from tests.fakes.pty_program import PtyProgram
from tests.fakes.warm_command import run_warm
from tests.scenarios.command import until

__all__ = ["CHANGED", "NEW", "OLD", "REPLIES", "TESTS", "DaysWork", "Life", "checkout"]

_ROOT = Path(__file__).parents[2]
_TAKEN = ("pyproject.toml", "README.md", "graph_agent", "tools", "policy", "tests")
_LEFT = shutil.ignore_patterns("__pycache__", "*.pyc", "crash", "bench", "scenarios")
_KEYS = "[s]top the turn > "
_CTRL_D = "\x04"

OLD, NEW = "laid_out", "with_line_ends"
CHANGED = ("tools/file_ops/line_ends.py", "tools/file_ops/replacing.py", "tests/tools/file_ops/test_line_ends.py")
"""The three files that hold the old name."""
_FOLDER = "tests/tools/file_ops"
TESTS = f"python -m pytest -p no:cacheprovider {_FOLDER}/test_line_ends.py {_FOLDER}/test_replacing.py"
_PROMPT = f"{OLD} in tools/file_ops is a poor name. Call it {NEW} everywhere, and run their tests."

REPLIES: tuple[Reply, ...] = (
    TCS(
        ("c1", "grep", {"pattern": OLD, "output_mode": "files_with_matches"}),
        ("c2", "read_file", {"file_path": CHANGED[0], "offset": 54, "limit": 7}),
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
    TC("c6", "bash", {"command": TESTS, "description": "run their tests"}),
    TXT(f"`{OLD}` is now `{NEW}` in three files, and their tests pass."),
)


def checkout(folder: Path) -> Path:
    """A checkout of this project under version control, so that what changed can be asked of git."""
    workspace = folder / "graph-agent"
    workspace.mkdir()
    for name in _TAKEN:
        source = _ROOT / name
        if source.is_dir():
            shutil.copytree(source, workspace / name, ignore=_LEFT)
        else:
            shutil.copy(source, workspace / name)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "as it was")):
        subprocess.run([*git, *arguments], cwd=workspace, check=True)
    return workspace


@dataclass(frozen=True)
class Life:
    """What one process of the chat left behind."""

    ended: int
    """Its exit code, or the negative signal that killed it."""
    screen: str
    """Everything it wrote to the terminal."""


class DaysWork:
    """The work, played as far as asked; `server` answers as the model."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.workspace = checkout(folder)
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

    def until_killed(self) -> Life:
        """Ask, approve three edits and the tests, and kill the chat while the tests run."""
        chat = self._chat("chat", "--thread", "rename")
        chat.sees("> ")
        chat.enters(_PROMPT)
        for path in CHANGED:
            chat.sees(path)
            chat.sees(_KEYS)
            chat.enters("y")
        chat.sees("HIGH risk")
        chat.sees(_KEYS)
        chat.enters("y")
        until(lambda: "collected" in self._written_by_commands())
        chat.signals(signal.SIGKILL)
        return Life(chat.ends(), chat.output)

    def taken_up_again(self) -> Life:
        """Resume, see what was broken off, run the tests again, hear the model out."""
        chat = self._chat("resume", "rename")
        chat.sees("Interrupted: ")
        chat.sees("[r]etry")
        chat.sees("> ")
        chat.enters("e")
        chat.sees("[r]etry  [d]one  [c]ancel > ")
        chat.enters("r")
        chat.sees("their tests pass")
        chat.sees("> ")
        chat.types(_CTRL_D)
        return Life(chat.ends(), chat.output)

    def git(self, *arguments: str) -> list[str]:
        """The lines git prints in the checkout."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.workspace, capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout.splitlines()

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another process of the program."""
        return run_warm(arguments, self.workspace, self._environment, "")

    def _written_by_commands(self) -> str:
        spools = (self._home / "data" / "graph-agent.db.blobs" / "spool").rglob("*.out")
        return "".join(path.read_text(errors="replace") for path in spools)

    def _chat(self, *arguments: str) -> PtyProgram:
        return PtyProgram(["-m", "graph_agent", *arguments], self.workspace, self._environment)
