"""The throwaway folder of the demo, and the real commands that run in it, each printed before it runs."""

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.cli.views.table import colorize, print_lines
from graph_agent.errors import AgentError, UsageError

__all__ = ["CHARGES", "SCRIPT", "DemoCommands", "DemoFailed", "DemoWorkspace", "demo_workspace"]

CHARGES = "charges.txt"
"""The effect of the command: a line for each time the customer was charged."""
SCRIPT = "charge.sh"
_PRINTED = "card charged, waiting for the bank"
_FILES: Mapping[str, str] = {
    "order.txt": "order 17\nstatus: open\ntotal: 12.40\n",
    SCRIPT: f"""\
echo "order 17: 12.40" >> {CHARGES}
echo "{_PRINTED}"
sleep 5
echo "the bank said yes"
""",
}
_PREFIX = "graph-agent-demo-"
_LOCK = "held"
_OWN_VARIABLES = ("GRAPH_AGENT_", "OPENAI_")
"""Variables with these prefixes would bring the user's own model, mode or database into the demo."""
_PROGRAM = (sys.executable, "-m", "graph_agent")
_KEEP_HINT = "graph-agent demo --keep keeps its files"
_GRACE_S = 8.0
"""How long a command may take to exit; it gives a running call five seconds."""
_POLL_S = 0.05
_OWN_GROUP = 0
"""Ctrl-C goes to the demo, which ends its command: a starting Python would print a traceback."""


@dataclass(frozen=True, slots=True)
class DemoWorkspace:
    """The folder of one demo."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The workspace of its commands: a small shop."""
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        """The home of its commands, with the database and no settings."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its commands: this home, temporary files in the folder, no settings of the user."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
        return {**kept, "GRAPH_AGENT_HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")}

    def is_charged(self) -> bool:
        """Whether the command has charged and printed that; it has not ended then."""
        spools = self.home.rglob("*.out")
        return (self.workspace / CHARGES).exists() and any(_PRINTED.encode() in one.read_bytes() for one in spools)


@contextlib.contextmanager
def demo_workspace(*, is_kept: bool) -> Iterator[DemoWorkspace]:
    """Make the folder of one demo and delete it at the end, unless it is kept.

    While this process is alive, a lock file in the folder keeps other demos from deleting it; the next demo deletes
    what a killed one left. A folder that is kept has no lock file.

    Raises:
        UsageError: no temporary folder can be made.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
    lock = None
    try:
        demo = DemoWorkspace(Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve())
        if not is_kept:
            # Locked before it gets its name: another demo must not find it unlocked.
            draft = demo.folder / f"{_LOCK}.new"
            lock = os.open(draft, os.O_CREAT | os.O_RDWR, 0o600)
            with contextlib.suppress(OSError):  # Where nothing can be locked, nothing is taken for abandoned.
                fcntl.flock(lock, fcntl.LOCK_EX)
            draft.rename(demo.folder / _LOCK)
        demo.workspace.mkdir()
        (demo.folder / "tmp").mkdir()
        for name, text in _FILES.items():
            (demo.workspace / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise UsageError(
            f"The demo cannot make a temporary folder ({failure}). Set TMPDIR to another folder."
        ) from failure
    try:
        yield demo
    finally:
        if lock is not None:
            shutil.rmtree(demo.folder, ignore_errors=True)
            os.close(lock)


def _is_abandoned(folder: Path) -> bool:
    """Whether it belongs to a dead demo of this user."""
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return False
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


class DemoFailed(AgentError):
    """A command of the demo did not do what it is there to show; the message names the command."""


class DemoCommands:
    """The commands of one demo. A method raises DemoFailed if its command does not end as the demo expects."""

    def __init__(self, demo: DemoWorkspace, program: Sequence[str] = _PROGRAM) -> None:
        self._demo = demo
        self._program = program
        self._running: subprocess.Popen[bytes] | None = None

    def run(self, *arguments: str, exit_code: int = 0) -> None:
        """Print the command and run it."""
        self._print(f"graph-agent {shlex.join(arguments)}")
        self._require(arguments, self._start([*self._program, *arguments]).wait(), exit_code)

    def show(self, file: str) -> None:
        """Print a file of the workspace with `cat`."""
        self._print(f"cat {file}")
        self._start(["/bin/cat", file]).wait()

    def run_and_kill(self, *arguments: str, once: Callable[[], bool], within_s: float = 30.0) -> None:
        """Print the command, run it, and kill it with SIGKILL as soon as `once` is true."""
        self._print(f"graph-agent {shlex.join(arguments)} &")
        child = self._start([*self._program, *arguments])
        deadline = time.monotonic() + within_s
        while not once():
            if child.poll() is not None or time.monotonic() > deadline:
                raise _failure(arguments, "did not get to the point where it is killed")
            time.sleep(_POLL_S)
        self._print(f"kill -9 {child.pid}")
        child.kill()
        child.wait()

    def read(self, *arguments: str) -> Any:
        """The JSON output of a command, which is not printed."""
        done = self._run_quietly(*arguments, "--json")
        self._require(arguments, done.returncode, 0)
        return json.loads(done.stdout)

    def end(self) -> None:
        """End the running command, and the processes that a killed one left."""
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()
            try:
                self._running.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self._running.kill()
                self._running.wait()
        self._run_quietly("recover", "--all", "cancel", "--end-processes")

    def _run_quietly(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [*self._program, *arguments],
            cwd=self._demo.workspace,
            env=self._demo.environment,
            capture_output=True,
            check=False,
            process_group=_OWN_GROUP,
        )

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        sys.stdout.flush()
        # Both streams in one order: a reader of this program's output gets all of it.
        self._running = subprocess.Popen(
            command,
            cwd=self._demo.workspace,
            env=self._demo.environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            process_group=_OWN_GROUP,
        )
        return self._running

    @staticmethod
    def _print(line: str) -> None:
        print_lines(["", colorize(f"$ {line}", "heading")])

    @staticmethod
    def _require(arguments: tuple[str, ...], code: int, expected: int) -> None:
        if code != expected:
            print_lines([""])
            sys.stdout.flush()  # If the reader of this program is gone, this fails and nothing is reported.
            raise _failure(arguments, f"ended with {code} instead of {expected}")


def _failure(arguments: Sequence[str], what: str) -> DemoFailed:
    return DemoFailed(f"graph-agent {shlex.join(arguments)} {what}; {_KEEP_HINT}")
