import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from docs._generate import picture
from docs._generate.terminal import lines_of
from tests.architecture.checkout import ROOT
from tests.fakes.openai_server import ERR, TCS, TXT, FakeOpenAI, Reply
from tests.fakes.pty_program import PtyProgram
from tests.fakes.warm_command import run_warm

_KEYS = "[s]top the turn > "
_CTRL_C, _CTRL_D = "\x03", "\x04"


class _Desk:
    """A home, a workspace and a scripted provider; each chat is a process of its own."""

    def __init__(self, folder: Path, *replies: Reply) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.server = FakeOpenAI(replies, strict=True)
        self.environment = {
            **os.environ,
            "GRAPH_AGENT_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": self.server.base_url,
            "OPENAI_API_KEY": "any",
        }

    def chat(self, *arguments: str) -> PtyProgram:
        return PtyProgram(["-m", "graph_agent", *(arguments or ("chat",))], self.workspace, self.environment)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_warm(arguments, self.workspace, self.environment, "")

    def text(self, name: str) -> str | None:
        path = self.workspace / name
        return path.read_text() if path.exists() else None

    def results(self, number: int) -> list[tuple[str, str]]:
        """Call id and content of each tool message in a request, the first being 0."""
        messages: list[dict[str, Any]] = self.server.bodies[number]["messages"]
        return [(item["tool_call_id"], str(item["content"])) for item in messages if item["role"] == "tool"]


OpenDesk = Callable[..., _Desk]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[OpenDesk]:
    with ExitStack() as opened:

        def open_one(*replies: Reply) -> _Desk:
            desk = _Desk(tmp_path, *replies)
            opened.enter_context(desk.server)
            return desk

        yield open_one


def _bash(call_id: str, command: str) -> tuple[str, str, dict[str, str]]:
    return call_id, "bash", {"command": command}


def test_answers_of_two_lives_are_each_used_for_the_call_they_were_given_to(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo a >> log.txt"), _bash("c2", "echo b >> log.txt")), TXT("done"))
    first = desk.chat()
    first.sees("> ")

    first.enters("go")
    first.sees("echo a >> log.txt")
    first.sees(_KEYS)
    first.enters("y")
    first.sees("echo b >> log.txt")
    first.sees(_KEYS)
    before = desk.text("log.txt")
    first.types(_CTRL_C)
    left = first.ends()
    second = desk.chat("resume")
    second.sees("echo b >> log.txt")
    second.sees(_KEYS)
    second.enters("y")
    second.sees("done")
    second.types(_CTRL_D)

    assert (left, before, second.ends(), desk.text("log.txt")) == (3, None, 0, "a\nb\n")
    assert ("echo a" in second.output.split("Approval", 1)[-1].split(_KEYS)[0], desk.server.faults) == (False, [])
    assert [call_id for call_id, _ in desk.results(1)] == ["c1", "c2"]


def test_after_a_stop_the_next_message_is_accepted_and_nothing_keeps_running(open_desk: OpenDesk) -> None:
    marker = "61.7384"
    sleeps = TCS(*(_bash(f"c{number}", f"sleep {marker}") for number in (1, 2, 3)))
    desk = open_desk(sleeps, TXT("ok then"))
    chat = desk.chat("chat", "--dangerously-skip-permissions")
    chat.sees("> ")

    chat.enters("go")
    chat.sees("  … ")
    time.sleep(0.5)
    chat.types(_CTRL_C)
    chat.enters("never mind, say ok")
    chat.sees("ok then")
    chat.types(_CTRL_D)

    assert (chat.ends(), desk.server.faults) == (0, [])
    assert [call_id for call_id, _ in desk.results(1)] == ["c1", "c2", "c3"]
    assert all("stopped by user" in content for _, content in desk.results(1))
    assert subprocess.run(["pgrep", "-f", f"sleep {marker}"], check=False).returncode == 1


def test_a_refusal_with_its_reason_reaches_the_model_and_nothing_runs(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo no >> log.txt")), TXT("understood"))
    chat = desk.chat()
    chat.sees("> ")

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("r")
    chat.sees("Reason: ")
    chat.enters("not now")
    chat.sees("understood")
    chat.types(_CTRL_D)

    assert (chat.ends(), desk.text("log.txt"), "not now" in desk.results(1)[0][1]) == (0, None, True)


def test_a_question_survives_a_kill_and_takes_its_answer_in_the_next_life(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo no >> log.txt")), TXT("understood"))
    first = desk.chat()
    first.sees("> ")
    first.enters("go")
    first.sees(_KEYS)
    first.signals(signal.SIGKILL)
    killed = first.ends()

    second = desk.chat("resume")
    second.sees("echo no >> log.txt")
    second.sees(_KEYS)
    second.enters("n")
    second.sees("understood")
    second.types(_CTRL_D)

    assert (killed, second.ends(), desk.text("log.txt"), len(desk.server.bodies)) == (-9, 0, None, 2)


def test_a_call_killed_while_it_ran_is_asked_about_with_its_output_and_not_run_again(open_desk: OpenDesk) -> None:
    command = "echo once >> log.txt; printf half; printf 'way\\n'; sleep 60"
    desk = open_desk(TCS(_bash("c1", command)), TXT("understood"))
    first = desk.chat()
    first.sees("> ")
    first.enters("go")
    first.sees(_KEYS)
    first.enters("y")
    first.sees("halfway")
    first.signals(signal.SIGKILL)
    first.ends()

    second = desk.chat("resume")
    second.sees("The previous session")
    second.sees("Interrupted")
    second.sees("halfway")
    second.sees("[c]ancel")
    second.enters("d")
    second.sees("sent to the model) ")
    second.enters("it was written once")
    second.sees("understood")
    second.types(_CTRL_D)

    assert (second.ends(), desk.text("log.txt")) == (0, "once\n")
    assert "it was written once" in desk.results(1)[0][1]


def test_a_question_answered_by_another_process_disappears_and_the_turn_goes_on(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo yes >> log.txt")), TXT("done"))
    chat = desk.chat()
    chat.sees("> ")
    chat.enters("go")
    chat.sees(_KEYS)

    waiting = json.loads(desk.run("approvals", "list", "--json").stdout)["approvals"]
    answered = desk.run("approvals", "approve", waiting[0]["call_id"])
    answered_at = time.monotonic()
    chat.sees("answered by")
    took = time.monotonic() - answered_at
    chat.sees("done")
    chat.types(_CTRL_D)

    assert (answered.returncode, chat.ends(), desk.text("log.txt"), took < 1.5) == (0, 0, "yes\n", True)


def test_nothing_of_a_command_or_path_is_obeyed_by_the_terminal(open_desk: OpenDesk) -> None:
    evil = TCS(
        _bash("c1", "touch pwn #\r\x1b[2K   command: ls -la"),
        ("c2", "write_file", {"file_path": "a\x1b[1A.txt", "content": "x"}),
    )
    desk = open_desk(evil, TXT("ok"))
    chat = desk.chat()
    chat.sees("> ")

    chat.enters("go")
    chat.sees("touch pwn #")
    chat.sees(_KEYS)
    chat.enters("n")
    chat.sees(".txt")
    chat.sees(_KEYS)
    chat.enters("n")
    chat.sees("ok")
    chat.types(_CTRL_D)

    assert (chat.ends(), desk.text("pwn")) == (0, None)
    assert not any(raw in chat.output for raw in ("pwn #\r", "\x1b[2K   command", "\x1b[1A.txt"))


def test_texts_that_look_like_markup_are_printed_as_they_are(open_desk: OpenDesk) -> None:
    echo = """echo "[/'A', 1, /'B'] [red]x[/]"; exit 3"""
    desk = open_desk(TCS(_bash("c1", echo)), TXT("[/nestedType] done [bold]"), ERR(401, "bad [/tag]"))
    chat = desk.chat("chat", "--mode", "bypassPermissions")
    chat.sees("> ")

    chat.enters("go")
    chat.sees("[/'A', 1, /'B'] [red]x[/]")
    chat.sees("[/nestedType] done [bold]")
    chat.enters("again")
    chat.sees("bad [/tag]")
    chat.types(_CTRL_D)

    assert (chat.ends(), "MarkupError" in chat.output) == (0, False)


def test_a_headless_run_writes_no_escape_no_spinner_and_only_the_answer_on_stdout(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "sleep 0.3")), TXT("**hi**"))

    ended = desk.run("run", "go", "--mode", "bypassPermissions")

    assert (ended.returncode, ended.stdout) == (0, "**hi**\n")
    assert not {"\x1b", "\r"} & {*ended.stdout, *ended.stderr}


def test_a_prompt_on_stdin_is_one_run(open_desk: OpenDesk) -> None:
    desk = open_desk(TXT("ok"))

    ended = subprocess.run(
        [sys.executable, "-m", "graph_agent"],
        input="say ok\n",
        cwd=desk.workspace,
        env=desk.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert (ended.returncode, ended.stdout) == (0, "ok\n")


@pytest.mark.parametrize(("flag", "log"), [(("--approve", "all"), "x\n"), (("--reject", "c1"), None)])
def test_a_headless_run_that_waits_goes_on_with_the_answer_of_a_flag(
    open_desk: OpenDesk, flag: tuple[str, str], log: str | None
) -> None:
    desk = open_desk(TCS(_bash("c1", "echo x >> log.txt")), TXT("done"))

    waiting = desk.run("run", "go", "--output", "json")
    report = json.loads(waiting.stdout)
    call_id = report["pending_approvals"][0]["call_id"]
    names = (flag[0], call_id if flag[1] == "c1" else flag[1])
    ended = desk.run("run", "--resume", report["checkpoint_id"], *names)

    assert (waiting.returncode, ended.returncode, ended.stdout) == (3, 0, "done\n")
    assert (desk.text("log.txt"), len(desk.server.bodies)) == (log, 2)


def test_a_background_shell_that_ends_is_told_above_the_line_that_is_typed(open_desk: OpenDesk) -> None:
    call = {"command": "until [ -e go ]; do sleep 0.1; done; exit 3", "background": True}
    desk = open_desk(TCS(("c1", "bash", call)), TXT("it is running"), TXT("thanks"))
    chat = desk.chat("chat", "start it", "--mode", "bypassPermissions")
    chat.sees("it is running")
    chat.sees("> ")
    chat.types("well d")
    (desk.workspace / "go").touch()
    chat.sees("background shell sh1: exit code 3")
    chat.sees("well d")
    chat.enters("one")
    chat.sees("thanks")
    chat.types(_CTRL_D)

    assert chat.ends() == 0
    said, told = desk.server.bodies[-1]["messages"][-1]["content"].split("\n\n", 1)
    assert (said, "sh1: exit code 3" in told) == ("well done", True)


def test_the_picture_of_a_session_in_the_readme_shows_what_such_a_chat_shows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        screen = picture.play(Path(folder))
        shown = picture.normalize([line.plain for line in lines_of(screen)], Path(folder))

    drawn = picture.text_in((ROOT / "docs/session.svg").read_text(encoding="utf-8"))
    assert shown == picture.normalize(drawn, Path(folder)), "run `python -m docs._generate.picture`"
