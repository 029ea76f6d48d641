"""The program as a person meets it: a workspace, a home, a scripted provider, and the real command."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command

__all__ = ["CTRL_D", "KEYS", "Bench", "Ran", "SetUp", "bash", "play", "tool_messages"]

KEYS = "? help"
"""What the prompt of an approval ends with."""
CTRL_D = "\x04"


class Ran:
    """One headless run that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def ending(self) -> tuple[int, str]:
        """Exit code and what stdout holds, without the last line end."""
        return self.code, self.out.rstrip("\n")


class Bench:
    """One workspace with one home; `server` answers what the program asks."""

    def __init__(self, folder: Path, server: FakeOpenAI, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.server = server
        self.command = Command(folder, server.base_url, environment)

    @property
    def workspace(self) -> Path:
        """Where the program works."""
        return self.command.workspace

    @property
    def home(self) -> Path:
        """Where it keeps its config and its data."""
        return self.folder / "home"

    def configure(self, text: str) -> None:
        """Write the user's config file."""
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def write(self, **files: str | bytes) -> None:
        """Put files into the workspace; `a_txt` names a.txt."""
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (self.workspace / name.replace("_", ".")).write_bytes(data)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file in the workspace; None where there is none."""
        path = self.workspace / name
        return path.read_bytes() if path.exists() else None

    def ask(self, *arguments: str, cwd: Path | None = None) -> Ran:
        """A headless run with these arguments; nothing is allowed that is not."""
        done = self.command("run", *arguments, cwd=cwd)
        assert "Traceback (most recent call last)" not in done.stdout + done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def run(self, *arguments: str, cwd: Path | None = None) -> Ran:
        """A headless run in which everything is allowed."""
        return self.ask(*(arguments or ("go",)), "--mode", "bypassPermissions", cwd=cwd)

    def chat(self, *arguments: str) -> PtyProgram:
        """The program in a pseudo-terminal."""
        return self.command.chat(*arguments)

    def results(self, number: int) -> list[str]:
        """All tool messages of a request, the first request being 1."""
        return [str(message["content"]) for message in tool_messages(self.server.bodies[number - 1])]

    def steps(self) -> list[list[str]]:
        """What each request but the first brought: the tool messages at its end."""
        messages = [body["messages"] for body in self.server.bodies[1:]]
        return [[str(message["content"]) for message in _newest(sent)] for sent in messages]

    def sent_arguments(self, number: int) -> list[str]:
        """The arguments of all calls in a request, as they were sent."""
        messages = self.server.bodies[number - 1]["messages"]
        return [call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ()]


SetUp = Callable[..., Bench]
"""Takes the replies and the options of the scripted server."""


def play(chat: PtyProgram, *script: str | tuple[str, str]) -> None:
    """Wait for each of these texts in turn; the second of a pair is entered where the first is seen."""
    for step in script:
        seen, *entered = (step,) if isinstance(step, str) else step
        chat.sees(seen)
        for text in entered:
            (chat.types if text in (CTRL_D, "\x03") else chat.enters)(text)


def _newest(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    replies = [position for position, message in enumerate(messages) if message["role"] == "assistant"]
    return [message for message in messages[replies[-1] :] if message["role"] == "tool"] if replies else []


def tool_messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool messages of a request body."""
    return [message for message in body["messages"] if message["role"] == "tool"]


def bash(call_id: str, command: str, **arguments: Any) -> tuple[str, str, dict[str, Any]]:
    """A call of bash, as `TCS` takes it."""
    return call_id, "bash", {"command": command, **arguments}
