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

import pyte
import pytest

from docs._generate import picture
from docs._generate.terminal import lines_of
from tests.architecture.checkout import ROOT
from tests.cases.bench import Bench
from tests.fakes.forked_command import run_forked
from tests.fakes.openai_server import ERR, TCS, TXT, FakeOpenAI, Reply
from tests.fakes.pty_program import PtyProgram

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
        return run_forked(arguments, self.workspace, self.environment, "")

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

    first.plays("<go", "echo a >> log.txt", _KEYS, "<y", "echo b >> log.txt", _KEYS)
    before = desk.text("log.txt")
    first.types(_CTRL_C)
    left = first.ends()
    second = desk.chat("resume")
    second.plays("echo b >> log.txt", _KEYS, "<y", "done", f"^{_CTRL_D}")

    assert (left, before, second.ends(), desk.text("log.txt")) == (3, None, 0, "a\nb\n")
    assert ("echo a" in second.output.split("Approval", 1)[-1].split(_KEYS)[0], desk.server.faults) == (False, [])
    assert [call_id for call_id, _ in desk.results(1)] == ["c1", "c2"]


def test_after_a_stop_the_next_message_is_accepted_and_nothing_keeps_running(open_desk: OpenDesk) -> None:
    marker = "61.7384"
    sleeps = TCS(*(_bash(f"c{number}", f"sleep {marker}") for number in (1, 2, 3)))
    desk = open_desk(sleeps, TXT("ok then"))
    chat = desk.chat("chat", "--dangerously-skip-permissions")
    chat.sees("> ")

    chat.plays("<go", "  … ")
    time.sleep(0.5)
    chat.plays(f"^{_CTRL_C}", "<never mind, say ok", "ok then", f"^{_CTRL_D}")

    assert (chat.ends(), desk.server.faults) == (0, [])
    assert [call_id for call_id, _ in desk.results(1)] == ["c1", "c2", "c3"]
    assert all("stopped by user" in content for _, content in desk.results(1))
    assert subprocess.run(["pgrep", "-f", f"sleep {marker}"], check=False).returncode == 1


def test_a_refusal_with_its_reason_reaches_the_model_and_nothing_runs(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo no >> log.txt")), TXT("understood"))
    chat = desk.chat()
    chat.sees("> ")

    chat.plays("<go", _KEYS, "<r", "Reason: ", "<not now", "understood", f"^{_CTRL_D}")

    assert (chat.ends(), desk.text("log.txt"), "not now" in desk.results(1)[0][1]) == (0, None, True)


def test_a_question_survives_a_kill_and_takes_its_answer_in_the_next_life(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo no >> log.txt")), TXT("understood"))
    first = desk.chat()
    first.plays("> ", "<go", _KEYS)
    first.signals(signal.SIGKILL)
    killed = first.ends()

    second = desk.chat("resume")
    second.plays("echo no >> log.txt", _KEYS, "<n", "understood", f"^{_CTRL_D}")

    assert (killed, second.ends(), desk.text("log.txt"), len(desk.server.bodies)) == (-9, 0, None, 2)


def test_a_call_killed_while_it_ran_is_asked_about_with_its_output_and_not_run_again(open_desk: OpenDesk) -> None:
    command = "echo once >> log.txt; printf half; printf 'way\\n'; sleep 60"
    desk = open_desk(TCS(_bash("c1", command)), TXT("understood"))
    first = desk.chat()
    first.plays("> ", "<go", _KEYS, "<y", "halfway")
    first.signals(signal.SIGKILL)
    first.ends()

    second = desk.chat("resume")
    second.plays("The previous session", "Interrupted", "halfway", "[c]ancel", "<d", "sent to the model) ")
    second.plays("<it was written once", "understood", f"^{_CTRL_D}")

    assert (second.ends(), desk.text("log.txt")) == (0, "once\n")
    assert "it was written once" in desk.results(1)[0][1]


def test_a_question_answered_by_another_process_disappears_and_the_turn_goes_on(open_desk: OpenDesk) -> None:
    desk = open_desk(TCS(_bash("c1", "echo yes >> log.txt")), TXT("done"))
    chat = desk.chat()
    chat.plays("> ", "<go", _KEYS)

    waiting = json.loads(desk.run("approvals", "list", "--json").stdout)["approvals"]
    answered = desk.run("approvals", "approve", waiting[0]["call_id"])
    answered_at = time.monotonic()
    chat.sees("answered by")
    took = time.monotonic() - answered_at
    chat.plays("done", f"^{_CTRL_D}")

    assert (answered.returncode, chat.ends(), desk.text("log.txt"), took < 1.5) == (0, 0, "yes\n", True)


def test_nothing_of_a_command_or_path_is_obeyed_by_the_terminal(open_desk: OpenDesk) -> None:
    evil = TCS(
        _bash("c1", "touch pwn #\r\x1b[2K   command: ls -la"),
        ("c2", "write_file", {"file_path": "a\x1b[1A.txt", "content": "x"}),
    )
    desk = open_desk(evil, TXT("ok"))
    chat = desk.chat()
    chat.sees("> ")

    chat.plays("<go", "touch pwn #", _KEYS, "<n", ".txt", _KEYS, "<n", "ok", f"^{_CTRL_D}")

    assert (chat.ends(), desk.text("pwn")) == (0, None)
    assert not any(raw in chat.output for raw in ("pwn #\r", "\x1b[2K   command", "\x1b[1A.txt"))


def test_texts_that_look_like_markup_are_printed_as_they_are(open_desk: OpenDesk) -> None:
    echo = """echo "[/'A', 1, /'B'] [red]x[/]"; exit 3"""
    desk = open_desk(TCS(_bash("c1", echo)), TXT("[/nestedType] done [bold]"), ERR(401, "bad [/tag]"))
    chat = desk.chat("chat", "--mode", "bypassPermissions")
    chat.sees("> ")

    chat.plays("<go", "[/'A', 1, /'B'] [red]x[/]", "[/nestedType] done [bold]", "<again", "bad [/tag]")
    chat.plays(f"^{_CTRL_D}")

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
    chat.plays("it is running", "> ", "^well d")
    (desk.workspace / "go").touch()
    chat.plays("background shell sh1: exit code 3", "well d", "<one", "thanks", f"^{_CTRL_D}")

    assert chat.ends() == 0
    said, told = desk.server.bodies[-1]["messages"][-1]["content"].split("\n\n", 1)
    assert (said, "sh1: exit code 3" in told) == ("well done", True)


def test_the_picture_of_a_session_in_the_readme_shows_what_such_a_chat_shows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        screen = picture.play(Path(folder))
        shown = picture.normalize([line.plain for line in lines_of(screen)], Path(folder))

    drawn = picture.text_in((ROOT / "docs/session.svg").read_text(encoding="utf-8"))
    assert shown == picture.normalize(drawn, Path(folder)), "run `python -m docs._generate.picture`"


def test_a_message_brings_a_completed_file_and_a_shared_shell_line_and_was_in_an_editor(
    tmp_path: Path,
) -> None:
    with FakeOpenAI([TXT("first"), TXT("second")], strict=True) as server:
        bench = Bench(tmp_path, server, {"VISUAL": "sed -i s/lok/look/", "SHELL": "/bin/sh"})
        bench.write(notes_txt="of the file\n")
        (bench.home / "commands").mkdir(parents=True)
        (bench.home / "commands" / "review.md").write_text("Review $1.")
        chat = bench.chat("chat")
        chat.plays("> ", "<!printf 'of the \\033[2Jline\\n'; exit 3", "of the line", "[exit code 3]", "</share")
        chat.plays("Your next message includes", "^lok @not\t", "es.txt", "^\x18\x05", "ok @notes.txt", "<")
        chat.plays("first", "</review notes.txt", "second", "^\x04")

        assert chat.ends() == 0

    said, reviewed = (body["messages"][-1]["content"] for body in server.bodies)
    assert said.startswith('look @notes.txt\n\n<file path="notes.txt">')
    assert "of the file" in said
    assert said.endswith("[exit code 3]\n```")
    assert reviewed == "Review notes.txt."


_KEYS = "[s]top the turn > "
_MORE = "[m]ore > "
_CTRL_D = "\x04"


def _on_screen(output: str) -> list[str]:
    """What a terminal of the program's width shows of these bytes, every line of it."""
    screen = pyte.Screen(100, 3_000)
    pyte.Stream(screen).feed(output)
    return [line.rstrip() for line in screen.display]


class _Chat:
    """A chat in which the model asks for one call."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        environment = {
            **os.environ,
            "GRAPH_AGENT_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "any",
        }
        self.program = PtyProgram(["-m", "graph_agent", "chat", "go"], self.workspace, environment)

    def leaves(self) -> int:
        self.program.plays("finished", f"^{_CTRL_D}")
        return self.program.ends()


@pytest.fixture
def open_chat(tmp_path: Path) -> Iterator[Callable[[str], _Chat]]:
    with ExitStack() as opened:

        def open_one(command: str) -> _Chat:
            server = FakeOpenAI([TCS(("c1", "bash", {"command": command})), TXT("finished")], strict=True)
            return _Chat(tmp_path, opened.enter_context(server))

        yield open_one


def test_what_hides_or_misleads_stands_on_the_screen_as_an_escape_or_is_told(
    open_chat: Callable[[str], _Chat],
) -> None:
    command = (
        "touch g\u0456t; echo a\u202eb\u200bc\U000e0041d\x1b[2Ke\rf\x07g\u2066h\xadi\u3164j "
        + "x" * 10_000
        + " END"
    )
    chat = open_chat(command)

    chat.program.sees(_KEYS)
    shown = _on_screen(chat.program.output)
    chat.program.enters("n")

    assert chat.leaves() == 0
    whole = "".join(line.strip().removeprefix("│ ") for line in shown)
    assert "a\\u202eb\\u200bc\\U000e0041d\\x1b[2Ke\\rf\\x07g\\u2066h\\xadi\\u3164j" in whole
    assert whole.count("x" * 10_000 + " END") >= 1
    assert "U+0456 CYRILLIC SMALL LETTER" in whole
    assert any("HIGH risk" in line for line in shown)
    assert list(chat.workspace.iterdir()) == []


def test_a_long_command_is_opened_to_its_end_before_yes_counts_and_no_key_is_the_default(
    open_chat: Callable[[str], _Chat],
) -> None:
    chat = open_chat("\n".join(f"echo {number} >> log" for number in range(500)))
    program = chat.program

    program.sees(_MORE)
    for line, told in (
        ("y", "You have not seen all"),
        ("a", "You have not seen all"),
        ("", "Please answer"),
        ("yep", "Please answer"),
    ):
        program.plays(f"<{line}", told, _MORE)
    hidden = "echo 499 >> log" not in "".join(_on_screen(program.output))
    program.enters("m")
    while program.sees_one_of(_MORE, _KEYS + "\x1b") == 0:
        program.enters("m")
    program.enters("y")

    assert chat.leaves() == 0
    shown = "\n".join(_on_screen(program.output))
    assert (hidden, [number for number in range(500) if f"echo {number} >> log" not in shown]) == (True, [])
    assert (chat.workspace / "log").read_text().split() == [str(number) for number in range(500)]
