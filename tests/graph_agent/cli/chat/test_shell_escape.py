import asyncio
import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from rich.console import Console

from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.prompts.editor import EditFailed
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.turn_display import TurnDisplay
from tests.fakes.waiting import is_running, until


class _Chat:
    def __init__(self, keys: PipeInput, folder: Path) -> None:
        self.keys = keys
        self.folder = folder
        self._stream = io.StringIO()
        console = Console(file=self._stream, width=80, markup=False, highlight=False)
        self.terminal = Terminal(None, source=keys)
        self.programs = UserPrograms(self.terminal, TurnDisplay(console))

    async def says(self, line: str) -> str:
        """What is shown of a line, without the hint."""
        await self.programs.run(line, self.folder)
        return self.shown.replace(_HINT, "")

    @property
    def shown(self) -> str:
        return self._stream.getvalue()


_HINT = "/share sends this to the model with your next message\n"


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Chat]:
    monkeypatch.setenv("SHELL", "/bin/sh")
    with create_pipe_input() as keys:
        yield _Chat(keys, tmp_path)


async def test_a_line_runs_in_the_workspace_and_its_exit_code_is_told(chat: _Chat) -> None:
    (chat.folder / "here").touch()

    assert await chat.says("ls; echo err >&2; exit 3") == "here\nerr\n[exit code 3]\n"


async def test_nothing_that_it_writes_is_obeyed_by_the_terminal(chat: _Chat) -> None:
    garbage = r"\033[31mred\033[0m\033]0;title\007 10%%\r20%%\n\001\377\tx\342\200\256"

    assert await chat.says(f"printf '{garbage}'") == "20%\n\\x01�    x\\u202e\n"


async def test_a_line_without_end_is_shown_in_pieces_and_ended_by_ctrl_c_alone(chat: _Chat) -> None:
    running = asyncio.create_task(chat.programs.run("echo $$ > pid; tr '\\0' x < /dev/zero", chat.folder))
    assert await until(lambda: chat.shown.count("\n") > 3)
    chat.keys.send_text("next\x03")
    await running

    assert chat.shown.replace(_HINT, "").endswith("[ended by signal 2]\n")
    assert not is_running(int((chat.folder / "pid").read_text()))
    chat.keys.send_text("\r")
    assert await chat.terminal.message() == "next"


async def test_an_interrupt_from_outside_ends_the_line_and_not_the_chat(chat: _Chat) -> None:
    running = asyncio.create_task(chat.programs.run("echo ready; while :; do sleep 0.05; done", chat.folder))
    assert await until(lambda: "ready" in chat.shown)
    os.kill(os.getpid(), signal.SIGINT)
    await running

    assert chat.shown.replace(_HINT, "") == "ready\n[ended by signal 2]\n"


async def test_one_that_does_not_listen_is_killed(chat: _Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph_agent.cli.chat.shell_escape._GRACE_S", 0.1)
    running = asyncio.create_task(
        chat.programs.run("trap '' INT; echo ready; while :; do sleep 0.05; done", chat.folder)
    )
    assert await until(lambda: "ready" in chat.shown)
    chat.keys.send_text("\x03")
    await running

    assert "[ended by signal 9]\n" in chat.shown


async def test_leaving_the_chat_ends_it(chat: _Chat) -> None:
    running = asyncio.create_task(chat.programs.run("echo $$ > pid; echo ready; sleep 60", chat.folder))
    assert await until(lambda: "ready" in chat.shown)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_running(int((chat.folder / "pid").read_text()))


async def test_what_it_leaves_running_goes_on_and_keeps_nobody_waiting(chat: _Chat) -> None:
    assert await chat.says("sleep 1 & echo started") == "started\n"


@pytest.mark.slow
async def test_what_it_leaves_running_may_write_without_end(chat: _Chat, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        await chat.says("yes $(seq 300) & echo $! > pid")
    left = int((chat.folder / "pid").read_text())

    assert (await until(lambda: not is_running(left)), caplog.messages) == (True, [])


async def test_the_model_hears_of_it_only_when_it_is_shared_and_once(chat: _Chat) -> None:
    await chat.says("echo '```'; false")
    before = chat.programs.shared_output
    chat.programs.share()

    shared = [chat.programs.shared_output]
    chat.programs.forget_shared()
    shared.append(chat.programs.shared_output)

    assert (before, shared) == (
        "",
        ["I ran this myself, in the workspace:\n````\n$ echo '```'; false\n```\n[exit code 1]\n````", ""],
    )
    assert chat.shown.endswith("Your next message includes the output of: $ echo '```'; false\n")


@pytest.mark.slow
async def test_of_a_long_output_the_end_is_shared(chat: _Chat) -> None:
    await chat.says("seq 20000")
    chat.programs.share()

    shared = chat.programs.shared_output

    assert ("characters left out]" in shared, shared.endswith("19999\n20000\n```")) == (True, True)
    assert len(shared) < 31_000


async def test_without_a_line_there_is_nothing_to_run_or_share(chat: _Chat) -> None:
    await chat.programs.run("", chat.folder)
    chat.programs.share()

    assert [line.split(":")[0] for line in chat.shown.splitlines()] == [
        "!COMMAND runs a line in your shell; /share sends its output to the model",
        "Nothing to share yet",
    ]


async def test_a_folder_that_is_gone_is_told(chat: _Chat) -> None:
    await chat.programs.run("ls", chat.folder / "gone")

    assert chat.shown == "The command could not be started: No such file or directory\n"


async def test_a_line_that_closes_its_output_works_on_to_its_own_end(chat: _Chat) -> None:
    assert await chat.says("exec > log 2>&1; sleep 0.3; echo done; exit 3") == "[exit code 3]\n"
    assert (chat.folder / "log").read_text() == "done\n"


async def test_a_line_with_a_nul_character_is_told_about(chat: _Chat) -> None:
    assert await chat.says("echo a\0b") == "The command could not be started: embedded null byte\n"


async def test_a_text_is_changed_in_the_persons_editor(chat: _Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/one/two/")

    assert await chat.programs.edit("one\n") == "two\n"
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(EditFailed, match="'/no/such/editor' could not be started"):
        await chat.programs.edit("one")
