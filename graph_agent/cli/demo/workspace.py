"""The throwaway folder of a demo: a small shop to work on, and a home that knows no settings, keys or threads.

Knows nothing of the commands that run in it.

Runs real commands of this program as processes of their own, each printed before it runs.

What they print goes where this process prints to, unchanged. Knows no command by name but the one that cleans up.
"""

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
"""What the command leaves behind: a line for each time the customer was charged."""
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
_NAMED = "graph-agent-demo-"
_HELD = "held"
_FOREIGN = ("GRAPH_AGENT_", "OPENAI_")
"""Variables of these names would bring the user's own model, mode or database into the demo."""


@dataclass(frozen=True, slots=True)
class DemoWorkspace:
    """Where one demo takes place."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The folder its commands work in."""
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        """Where its settings would be, and its database is."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """What its commands run with: this home, none of the user's settings, temporary files that go with it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        return {**kept, "GRAPH_AGENT_HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")}

    def is_in_the_middle(self) -> bool:
        """Whether the command has charged and said so, and has not ended yet: both are in files by then."""
        spools = self.home.rglob("*.out")
        return (self.workspace / CHARGES).exists() and any(_PRINTED.encode() in one.read_bytes() for one in spools)


@contextlib.contextmanager
def demo_workspace(*, is_kept: bool) -> Iterator[DemoWorkspace]:
    """A place for one demo; it is gone afterwards, however the demo ends, unless it is kept.

    What a demo left that was killed itself goes with the next one.

    Raises:
        UsageError: no temporary folder can be made.
    """
    _clear_away()
    try:
        place = DemoWorkspace(Path(tempfile.mkdtemp(prefix=_NAMED)).resolve())
        held = None if is_kept else _hold(place.folder)
        place.workspace.mkdir()
        (place.folder / "tmp").mkdir()
        for name, text in _FILES.items():
            (place.workspace / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise UsageError(
            f"the demo needs a temporary folder and cannot have one ({failure}); name another place with TMPDIR"
        ) from failure
    try:
        yield place
    finally:
        if held is not None:
            shutil.rmtree(place.folder, ignore_errors=True)
            os.close(held)


def _hold(folder: Path) -> int:
    """Keep the folder from being cleared away for as long as this process lives."""
    beginning = folder / f"{_HELD}.new"
    descriptor = os.open(beginning, os.O_CREAT | os.O_RDWR, 0o600)
    with contextlib.suppress(OSError):  # Where nothing can be held, nothing is taken for abandoned either.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    beginning.rename(folder / _HELD)
    return descriptor


def _clear_away() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_NAMED}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Whether it is of a demo of this user that lives no more; a folder that is to be kept has nothing to hold."""
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return False
    descriptor = os.open(folder / _HELD, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


_PROGRAM = (sys.executable, "-m", "graph_agent")
_HOW_TO_LOOK = "graph-agent demo --keep leaves its files there to look at"
_GRACE_S = 8.0
"""How long a command that is told to leave may take; one that runs a call gives that five seconds."""
_LOOK_S = 0.05
_OWN_GROUP = 0
"""Ctrl-C is for the demo, which ends its command: Python that is just starting would answer it with a traceback."""


class DemoFailed(AgentError):
    """A command of the demo did not do what it is there to show; the message names it."""


class DemoCommands:
    """The commands of one demo."""

    def __init__(self, place: DemoWorkspace, program: Sequence[str] = _PROGRAM) -> None:
        self._place = place
        self._program = program
        self._running: subprocess.Popen[bytes] | None = None

    def run(self, *arguments: str, ends_with: int = 0) -> None:
        """Print the command, run it to its end.

        Raises:
            Unexpected: it ended otherwise.
        """
        self._print(f"graph-agent {shlex.join(arguments)}")
        self._require(arguments, self._start([*self._program, *arguments]).wait(), ends_with)

    def show(self, file: str) -> None:
        """Print a file of the workspace, by the program that is there for it."""
        self._print(f"cat {file}")
        self._start(["cat", file]).wait()

    def run_and_kill(self, *arguments: str, once: Callable[[], bool], within_s: float = 30.0) -> None:
        """Print the command, run it, and kill it with the one signal that no process can answer.

        Raises:
            Unexpected: it ended by itself, or did not come so far in time.
        """
        self._print(f"graph-agent {shlex.join(arguments)} &")
        child = self._start([*self._program, *arguments])
        deadline = time.monotonic() + within_s
        while not once():
            if child.poll() is not None or time.monotonic() > deadline:
                raise _unexpected(arguments, "never came to where it was to be killed")
            time.sleep(_LOOK_S)
        self._print(f"kill -9 {child.pid}")
        child.kill()
        child.wait()

    def read(self, *arguments: str) -> Any:
        """What a command answers as JSON; it is not printed.

        Raises:
            Unexpected: it failed.
        """
        asked = [*self._program, *arguments, "--json"]
        done = self._answered(asked)
        self._require(arguments, done.returncode, 0)
        return json.loads(done.stdout)

    def end(self) -> None:
        """End the command that runs, and what a killed one left running."""
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()
            try:
                self._running.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                self._running.kill()
                self._running.wait()
        self._answered([*self._program, "recover", "--all", "cancel", "--end-processes"])

    def _answered(self, command: list[str]) -> "subprocess.CompletedProcess[bytes]":
        place = self._place
        return subprocess.run(
            command,
            cwd=place.workspace,
            env=place.environment,
            capture_output=True,
            check=False,
            process_group=_OWN_GROUP,
        )

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        sys.stdout.flush()
        # Their news go the same way as their answers: a reader of this program's output is to get the whole story.
        self._running = subprocess.Popen(
            command,
            cwd=self._place.workspace,
            env=self._place.environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            process_group=_OWN_GROUP,
        )
        return self._running

    @staticmethod
    def _print(line: str) -> None:
        print_lines(["", colorize(f"$ {line}", "heading")])

    @staticmethod
    def _require(arguments: tuple[str, ...], code: int, wanted: int) -> None:
        if code != wanted:
            print_lines([""])
            sys.stdout.flush()  # Where the reader of this program has gone, that is why, and nothing to tell.
            raise _unexpected(arguments, f"ended with {code}, and {wanted} was expected")


def _unexpected(arguments: Sequence[str], what: str) -> DemoFailed:
    return DemoFailed(f"graph-agent {shlex.join(arguments)} {what}; {_HOW_TO_LOOK}")
