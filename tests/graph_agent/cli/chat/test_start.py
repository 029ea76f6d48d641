import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.cli.chat.start import open_chat
from graph_agent.cli.session_target import Target
from graph_agent.errors import UsageError
from tests.fakes.openai_server import TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command, until

pytestmark = pytest.mark.slow


def _chat(folder: Path, *arguments: str, **environment: str) -> PtyProgram:
    home = {"GRAPH_AGENT_HOME": str(folder / "home"), **environment}
    return PtyProgram(["-m", "graph_agent", *arguments], folder, home, is_cold=True)


def test_without_a_terminal_there_is_no_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "input").open("w+") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)

        with pytest.raises(UsageError, match="No terminal found"):
            open_chat(Target(tmp_path), None)


def test_no_command_on_a_terminal_is_the_chat_and_says_which_model_it_uses(tmp_path: Path) -> None:
    chat = _chat(tmp_path)

    chat.plays("graph-agent", "> ", "No model connected. Set OPENAI_API_KEY", "^\x04")

    assert chat.ends() == 0


def test_the_first_message_may_come_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    chat = _chat(tmp_path, "chat", "list")

    chat.plays("notes.txt", "> ", "^\x04")

    assert chat.ends() == 0
    assert (chat.output.count("OPENAI_API_KEY"), "type `help`" in chat.output) == (1, True)


def test_what_is_typed_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        chat = _chat(tmp_path)
        chat.plays("> ", "<list", "home/", "^\x04")
        code = chat.ends()
    finally:
        os.umask(umask)

    history = tmp_path / "home" / "data" / "history"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (history.parent, history)]
    assert (code, "+list" in history.read_text().splitlines(), modes) == (0, True, [0o700, 0o600])


def test_a_resumed_chat_shows_the_last_turns_first(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    first = _chat(tmp_path, "chat", "list", "--thread", "t1")
    first.plays("> ", "^\x04")
    first.ends()

    second = _chat(tmp_path, "resume", "t1")
    second.plays("list", "notes.txt", "> ", "^\x04")

    assert second.ends() == 0


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb"}])
@pytest.mark.parametrize(
    ("arguments", "typed", "shown"),
    [
        (("resume", "t1"), "/mode plan\r\x04", ["> list", "✓ ls", "> /mode plan", "mode: plan", "> /quit"]),
        (("-c",), "read notes.txt\r\x04", ["> list", "✓ ls", "> read notes.txt", "✓ read", "> /quit"]),
        (("-c", "/mode plan"), "exit\r", ["> list", "✓ ls", "> /mode plan", "mode: plan", "> exit"]),
        ((), "/mode plan\rlist\r\x04", ["> /mode plan", "mode: plan", "> list", "✓ ls", "> /quit"]),
        (("chat", "list"), "/mode plan\r/quit\r", ["> list", "✓ ls", "> /mode plan", "mode: plan", "> /quit"]),
    ],
)
def test_what_is_entered_while_the_chat_loads_is_done_in_order_and_shown_once(
    tmp_path: Path, arguments: tuple[str, ...], typed: str, shown: list[str], environment: dict[str, str]
) -> None:
    (tmp_path / "notes.txt").write_text("x")
    command = Command(tmp_path, extra_env={"GRAPH_AGENT_HOME": str(tmp_path / "home")})
    command("run", "list", "--thread", "t1", cwd=tmp_path)

    chat = _chat(tmp_path, *arguments, **environment)
    chat.plays("loading …", f"^{typed}")

    assert chat.ends() == 0
    lines = [line for line in chat.screen.lines if line.startswith((">", "✓", "mode:"))]
    assert [line[: len(step)] for line, step in zip(lines, shown, strict=True)] == shown


@pytest.mark.parametrize(
    ("arguments", "typed", "answers", "left"),
    [
        (("resume", "t1"), "half", 1, "> half"),
        (("--thread", "t1"), "half", 1, "> half"),
        (("-c",), "list\r", 2, ">"),
        (("chat", "-c", "list"), "half", 2, "> half"),
    ],
)
def test_a_thread_is_loaded_behind_the_prompt_and_what_is_typed_meanwhile_counts(
    tmp_path: Path, arguments: tuple[str, ...], typed: str, answers: int, left: str
) -> None:
    (tmp_path / "notes.txt").write_text("x")
    command = Command(tmp_path, extra_env={"GRAPH_AGENT_HOME": str(tmp_path / "home")})
    command("run", "list", "--thread", "t1", cwd=tmp_path)

    chat = _chat(tmp_path, *arguments)
    chat.plays("loading …", f"^{typed}")
    until(lambda: "\n".join(chat.shows("mode default")).count("✓ ls") == answers)
    lines = chat.shows("mode default")
    chat.plays("^\x15\x04")

    assert (chat.ends(), lines[-2]) == (0, left)


_SEND = """
import asyncio, sys
from graph_agent import open_session
from graph_agent.cli.chat.start import load_rest

async def send():
    async with open_session(workspace=sys.argv[1]) as session:
        load_rest()
        loaded = set(sys.modules)
        await session.send("hello")
        print(*sorted(set(sys.modules) - loaded))

asyncio.run(send())
"""


def test_a_request_waits_for_no_library_once_a_chat_has_loaded_the_rest(tmp_path: Path) -> None:
    with FakeOpenAI([TXT("hi")]) as server:
        home = {"GRAPH_AGENT_HOME": str(tmp_path / "home"), "GRAPH_AGENT_MODEL": "fake", "OPENAI_API_KEY": "any"}
        done = subprocess.run(
            [sys.executable, "-c", _SEND, str(tmp_path)],
            env={**os.environ, **home, "OPENAI_BASE_URL": server.base_url},
            capture_output=True,
            text=True,
            check=True,
        )

    ours = {*sys.stdlib_module_names, "graph_agent", "tools", "policy"}
    assert [name for name in done.stdout.split() if name.partition(".")[0] not in ours] == []
