"""Runs the real command in a folder of its own, against a scripted server or the offline mode."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.forked_command import ForkedProcess, Start, is_forkable, run_forked, start
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.fakes.pty_program import PtyProgram

__all__ = ["NO_SANDBOX", "Command", "Scripted", "free_port", "scripted", "until"]

NO_SANDBOX = 'sandbox = "off"\n'
"""For tests in which commands outlive their agent, or tell their own process ids: in a sandbox they do not."""


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until the condition holds.

    Raises:
        TimeoutError: it did not within the time.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened within {seconds:g} s")
        time.sleep(0.02)


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Command:
    """The program in one workspace with one home; `base_url` connects it to a server."""

    folder: Path
    base_url: str | None = None
    extra_env: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""
    """Text of the user's config.toml."""

    def __post_init__(self) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        if self.settings:
            (self.folder / "home").mkdir(exist_ok=True)
            (self.folder / "home" / "config.toml").write_text(self.settings, encoding="utf-8")

    @property
    def workspace(self) -> Path:
        """Where it runs."""
        return self.folder / "workspace"

    @property
    def env(self) -> dict[str, str]:
        """The environment of the program."""
        connected = {"GRAPH_AGENT_MODEL": "fake", "OPENAI_API_KEY": "sk-test"} if self.base_url else {}
        address = {"GRAPH_AGENT_BASE_URL": self.base_url} if self.base_url else {}
        home = {"GRAPH_AGENT_HOME": str(self.folder / "home")}
        return {**os.environ, **home, **connected, **address, **self.extra_env}

    def argv(self, *arguments: str) -> list[str]:
        """The whole command line."""
        return [sys.executable, "-m", "graph_agent", *arguments]

    def __call__(
        self, *arguments: str, cwd: Path | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run to the end; a run that takes a minute is stuck. It is forked where all is loaded already."""
        if not is_forkable(self.extra_env):
            return self.run_cold(*arguments, cwd=cwd, stdin=stdin)
        return run_forked(arguments, cwd or self.workspace, self.env, stdin)

    def run_cold(
        self, *arguments: str, cwd: Path | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """The same, started as a person starts it: for what is about starting."""
        return subprocess.run(
            self.argv(*arguments),
            cwd=cwd or self.workspace,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def limited(self, most_bytes: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run where no file may get longer than this, which is what a full disk looks like from inside."""
        shell = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes},) * 2); "
        return subprocess.run(
            [sys.executable, "-c", f"{shell}os.execv(sys.argv[1], sys.argv[1:])", *self.argv(*arguments)],
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def chat(self, *arguments: str) -> PtyProgram:
        """The program in a pseudo-terminal."""
        return PtyProgram(["-m", "graph_agent", *arguments], self.workspace, self.env)

    def json(self, *arguments: str) -> Any:
        """Run with `--json` and read what it printed."""
        return json.loads(self(*arguments, "--json").stdout)

    def run_json(self, *arguments: str) -> tuple[int, Any]:
        """Run a headless turn; exit code and the object it printed."""
        done = self("run", *arguments, "--output", "json")
        return done.returncode, json.loads(done.stdout)

    def start(self, *arguments: str) -> ForkedProcess:
        """Start in the background."""
        with Path(os.devnull).open("r+b") as nothing:
            return start(Start(arguments, self.workspace, self.env), [nothing.fileno()] * 3)

    def kill(self, process: ForkedProcess) -> None:
        """Kill -9, and wait until it is gone."""
        process.kill()
        process.wait(timeout=10)


class Scripted(Command):
    """The program against a scripted server."""

    server: FakeOpenAI

    def results(self, number: int = -1) -> list[str]:
        """The tool messages of a request, the newest if none is named."""
        return self._contents("tool", number)

    def said(self, number: int = -1) -> list[str]:
        """The same of the user's messages."""
        return self._contents("user", number)

    def _contents(self, role: str, number: int) -> list[str]:
        messages = self.server.bodies[number]["messages"]
        return [str(message["content"]) for message in messages if message["role"] == role]


@contextmanager
def scripted(folder: Path, replies: Sequence[Reply], *, settings: str = "") -> Iterator[Scripted]:
    """The program against a server that gives these replies and finds no fault with any request."""
    with FakeOpenAI(replies, strict=True) as server:
        command = Scripted(folder, server.base_url, settings=settings)
        command.server = server
        yield command
    assert server.faults == []
