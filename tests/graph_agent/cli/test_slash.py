import io
from pathlib import Path

import pytest
from rich.console import Console

from graph_agent.cli.commands_of_chat import COMMANDS
from graph_agent.cli.slash import Quit, Slash, is_command
from graph_agent.events import EventBus
from tests.fakes.scripted_session import ScriptedSession


@pytest.mark.parametrize(
    ("text", "is_one"), [("/help", True), ("help", False), ("/a\nb", False), ("a /help", False), ("/", True)]
)
def test_a_command_is_one_line_that_begins_with_a_slash(text: str, is_one: bool) -> None:
    assert is_command(text) == is_one


class _Talk:
    def __init__(self, folder: Path) -> None:
        self.stream = io.StringIO()
        self.session = ScriptedSession(EventBus(), folder)
        console = Console(file=self.stream, width=120, markup=False, highlight=False)
        self.slash = Slash(self.session, console, folder / "none.db")

    def says(self, text: str) -> str:
        self.slash.run(text)
        return self.stream.getvalue()


def test_help_names_every_command(tmp_path: Path) -> None:
    said = _Talk(tmp_path).says("/help")

    assert [name for name in COMMANDS if f"/{name}" not in said] == []


def test_quit_leaves_and_retry_asks_for_the_turn_to_go_on(tmp_path: Path) -> None:
    talk = _Talk(tmp_path)

    assert talk.slash.run("/retry")
    with pytest.raises(Quit):
        talk.slash.run("/quit")


def test_the_mode_is_shown_changed_and_refused(tmp_path: Path) -> None:
    talk = _Talk(tmp_path)

    said = [talk.says(line).splitlines()[-1] for line in ("/mode", "/mode plan", "/mode yolo")]

    assert said == [
        "mode: default",
        "mode: plan",
        "there is no mode 'yolo'; choose one of default, acceptEdits, plan, dontAsk",
    ]
    assert talk.session.mode == "plan"


def test_an_unknown_command_is_named_literally(tmp_path: Path) -> None:
    assert _Talk(tmp_path).says("/[red]x\x1b") == "/[red]x\\x1b is no command here; /help lists them\n"


def test_looking_before_anything_was_written_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = _Talk(tmp_path)

    said = [talk.says(command) + capsys.readouterr().out for command in ("/threads", "/calls", "/inspect")]

    assert ["No threads yet" in said[0], "there is nothing yet" in said[2]] == [True, True]
