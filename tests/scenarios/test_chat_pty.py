import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyte
import pytest

from docs._generate import picture
from docs._generate.terminal import lines_of
from tests.architecture.checkout import ROOT
from tests.cases.bench import Bench
from tests.fakes.openai_server import TCS, TXT, FakeOpenAI
from tests.scenarios.command import Command, Scripted, scripted

_KEYS = "? help"
_MORE = "v view all"
_CTRL_D = "\x04"


OpenCommand = Callable[..., Scripted]


@pytest.fixture
def open_command(tmp_path: Path) -> Iterator[OpenCommand]:
    with ExitStack() as opened:
        yield lambda *replies: opened.enter_context(scripted(tmp_path, replies))


def _text(command: Command, name: str) -> str | None:
    path = command.workspace / name
    return path.read_text() if path.exists() else None


def _bash(call_id: str, command: str) -> tuple[str, str, dict[str, str]]:
    return call_id, "bash", {"command": command}


def test_a_call_killed_while_it_ran_is_asked_about_and_not_run_again(open_command: OpenCommand) -> None:
    line = "echo once >> log.txt; printf half; printf 'way\\n'; sleep 60"
    command = open_command(TCS(_bash("c1", line)), TXT("understood"))
    first = command.chat("chat")
    first.plays("> ", "<go", _KEYS, "<y", "halfway")
    first.signals(signal.SIGKILL)
    first.ends()

    second = command.chat("resume")
    second.plays("The previous session", "outcome unknown", "halfway", "c cancel", "<d", "sent to the model) ")
    second.plays("<it was written once", "understood", f"^{_CTRL_D}")

    assert (second.ends(), _text(command, "log.txt")) == (0, "once\n")
    assert "it was written once" in command.results(1)[0]


def test_a_question_answered_by_another_process_disappears_and_the_turn_goes_on(open_command: OpenCommand) -> None:
    command = open_command(TCS(_bash("c1", "echo yes >> log.txt")), TXT("done"))
    chat = command.chat("chat")
    chat.plays("> ", "<go", _KEYS)

    waiting = command.json("approvals", "list")["approvals"]
    answered = command("approvals", "approve", waiting[0]["call_id"])
    answered_at = time.monotonic()
    chat.sees("answered by")
    took = time.monotonic() - answered_at
    chat.plays("done", f"^{_CTRL_D}")

    assert (answered.returncode, chat.ends(), _text(command, "log.txt"), took < 1.5) == (0, 0, "yes\n", True)


def test_a_background_shell_that_ends_is_told_above_the_line_that_is_typed(open_command: OpenCommand) -> None:
    call = {"command": "until [ -e go ]; do sleep 0.1; done; exit 3", "background": True}
    command = open_command(TCS(("c1", "bash", call)), TXT("it is running"), TXT("thanks"))
    chat = command.chat("chat", "start it", "--mode", "bypassPermissions")
    chat.plays("it is running", "> ", "^well d")
    (command.workspace / "go").touch()
    chat.plays("background shell sh1: exit code 3", "well d", "<one", "thanks", f"^{_CTRL_D}")

    assert chat.ends() == 0
    said, told = command.server.bodies[-1]["messages"][-1]["content"].split("\n\n", 1)
    assert (said, "sh1: exit code 3" in told) == ("well done", True)


def test_the_picture_of_a_session_in_the_readme_shows_what_such_a_chat_shows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        screen = picture.play(Path(folder))
        shown = picture.normalize([line.plain for line in lines_of(screen)], Path(folder))

    drawn = picture.text_in((ROOT / "docs/session.svg").read_text(encoding="utf-8"))
    assert shown == picture.normalize(drawn, Path(folder)), "run `python -m docs._generate.picture`"


def test_a_message_brings_a_completed_file_and_a_shared_shell_line_and_was_in_an_editor(tmp_path: Path) -> None:
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


def _on_screen(output: str) -> list[str]:
    """What a terminal of the program's width shows of these bytes, every line of it."""
    screen = pyte.Screen(100, 3_000)
    pyte.Stream(screen).feed(output)
    return [line.rstrip() for line in screen.display]


def test_what_hides_or_misleads_stands_on_the_screen_as_an_escape_or_is_told(
    open_command: OpenCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "cat")
    line = (
        "touch g\u0456t; echo a\u202eb\u200bc\U000e0041d\x1b[2Ke\rf\x07g\u2066h\xadi\u3164j "
        + "x" * 10_000
        + " END"
    )
    command = open_command(TCS(_bash("c1", line)), TXT("finished"))
    chat = command.chat("chat", "go")

    chat.plays(_MORE, "<v", "x END", _KEYS)
    shown = _on_screen(chat.output)
    chat.plays("<n", "finished", f"^{_CTRL_D}")

    assert chat.ends() == 0
    whole = "".join(line.strip().removeprefix("│ ") for line in shown)
    assert "a\\u202eb\\u200bc\\U000e0041d\\x1b[2Ke\\rf\\x07g\\u2066h\\xadi\\u3164j" in whole
    assert whole.count("x" * 10_000 + " END") >= 1
    assert "U+0456 CYRILLIC SMALL LETTER" in whole
    assert any("HIGH" in line for line in shown)
    assert list(command.workspace.iterdir()) == []


def test_a_long_command_is_opened_to_its_end_before_yes_counts_and_no_key_is_the_default(
    open_command: OpenCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "\n".join(f"echo {number} >> log" for number in range(500))
    command = open_command(TCS(_bash("c1", line)), TXT("finished"))
    monkeypatch.setenv("PAGER", "cat")
    program = command.chat("chat", "go")

    program.sees(_MORE)
    for line, told in (
        ("y", "You have not seen all"),
        ("a", "You have not seen all"),
        ("", "Type one of these keys"),
        ("yep", "Type one of these keys"),
    ):
        program.plays(f"<{line}", told, _MORE)
    hidden = "echo 250 >> log" not in "".join(_on_screen(program.output))
    program.plays("<v", "echo 250 >> log", _KEYS)
    program.plays("<y", "finished", f"^{_CTRL_D}")

    assert program.ends() == 0
    shown = "\n".join(_on_screen(program.output))
    assert (hidden, [number for number in range(500) if f"echo {number} >> log" not in shown]) == (True, [])
    assert (command.workspace / "log").read_text().split() == [str(number) for number in range(500)]


@pytest.mark.parametrize("is_used", [False, True])
def test_the_worktree_of_a_chat_that_was_left_without_a_message_is_removed(
    open_command: OpenCommand, *, is_used: bool
) -> None:
    command = open_command(TXT("fine"))
    own = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*own, *words], cwd=command.workspace, check=True)
    chat = command.chat("chat", "--worktree")
    chat.plays("Working in", "> ", *(["<go", "fine"] if is_used else []), f"^{_CTRL_D}")

    assert (chat.ends(), len(command.json("worktrees", "list")["worktrees"])) == (0, int(is_used))
    branches = subprocess.run(["git", "branch"], cwd=command.workspace, check=True, capture_output=True, text=True)
    assert len(branches.stdout.splitlines()) == 1 + is_used
