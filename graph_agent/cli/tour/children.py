"""Runs real commands of this program as processes of their own, each printed before it runs.

What they print goes where this process prints to, unchanged. Knows no command by name but the one that cleans up.
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from graph_agent.cli.tour.place import Place
from graph_agent.cli.views.screen import colored, print_lines
from graph_agent.errors import AgentError

__all__ = ["Children", "Unexpected"]

_PROGRAM = (sys.executable, "-m", "graph_agent")
_HOW_TO_LOOK = "graph-agent demo --keep leaves its files there to look at"
_GRACE_S = 8.0
"""How long a command that is told to leave may take; one that runs a call gives that five seconds."""
_LOOK_S = 0.05
_OWN_GROUP = 0
"""Ctrl-C is for the demo, which ends its command: Python that is just starting would answer it with a traceback."""


class Unexpected(AgentError):
    """A command of the demo did not do what it is there to show; the message names it."""


class Children:
    """The commands of one demo."""

    def __init__(self, place: Place, program: Sequence[str] = _PROGRAM) -> None:
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
        print_lines(["", colored(f"$ {line}", "heading")])

    @staticmethod
    def _require(arguments: tuple[str, ...], code: int, wanted: int) -> None:
        if code != wanted:
            print_lines([""])
            sys.stdout.flush()  # Where the reader of this program has gone, that is why, and nothing to tell.
            raise _unexpected(arguments, f"ended with {code}, and {wanted} was expected")


def _unexpected(arguments: Sequence[str], what: str) -> Unexpected:
    return Unexpected(f"graph-agent {shlex.join(arguments)} {what}; {_HOW_TO_LOOK}")
