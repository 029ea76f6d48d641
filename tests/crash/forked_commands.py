"""The real command line in a forked process: all is loaded already, so that many can start at the same instant.

Such a process has its own streams, environment and exit code, and dies by SIGKILL like any other.
"""

import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ended", "Running", "load", "start"]

_PARTS = (
    "graph_agent.app.approvals",
    "graph_agent.app.opening",
    "graph_agent.app.recovery",
    "graph_agent.app.session_parts",
    "graph_agent.cli.startup",
    "graph_agent.cli.main",
    "graph_agent.cli.session_target",
    "graph_agent.cli.headless.run",
    "graph_agent.cli.views.approvals",
    "graph_agent.cli.views.inspection",
    "graph_agent.cli.views.recovery",
    "graph_agent.cli.views.threads",
    "langchain_openai.chat_models.base",
)
_TIMEOUT_S = 50


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    arguments: tuple[str, ...]
    pid: int
    code: int
    """Negative: the signal that killed it."""
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Running:
    """A command under way."""

    arguments: tuple[str, ...]
    pid: int
    streams: Path

    def kill(self) -> None:
        """Kill -9; it may have ended already, and stays ours until it is waited for."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """Wait for the end.

        Raises:
            TimeoutError: it does not come.
        """
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                self.kill()
                os.waitpid(self.pid, 0)
                raise TimeoutError(f"{self.arguments} did not end in {_TIMEOUT_S} s")
            time.sleep(0.005)
        out, err = (self.streams.with_suffix(end).read_text(errors="replace") for end in (".out", ".err"))
        return Ended(self.arguments, self.pid, os.waitstatus_to_exitcode(status), out, err)


def load() -> None:
    """Import what commands load late, before the first is started."""
    for part in _PARTS:
        importlib.import_module(part)


def start(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], streams: Path) -> Running:
    """Fork a command; `streams` with .out and .err are where it writes to."""
    for end in (".out", ".err"):
        streams.with_suffix(end).touch()  # It may be killed before it has opened them.
    child = os.fork()
    if child == 0:
        code = 70
        try:
            _become(cwd, environment, streams)
            sys.argv = ["graph-agent", *arguments]
            code = importlib.import_module("graph_agent.cli.main").main()
        except BaseException:  # noqa: BLE001 - a forked child must not return into the test runner
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return Running(tuple(arguments), child, streams)


def _become(cwd: Path, environment: Mapping[str, str], streams: Path) -> None:
    os.chdir(cwd)
    os.environ.update(environment)
    source = os.open(os.devnull, os.O_RDONLY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    out, err = (os.open(streams.with_suffix(end), flags, 0o600) for end in (".out", ".err"))
    for number, descriptor in enumerate((source, out, err)):
        os.dup2(descriptor, number)
    # The runner's own streams may be captured: these are fresh ones over the descriptors.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
