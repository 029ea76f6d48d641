import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from graph_agent.cli.views.threads import confirm_delete
from graph_agent.inspect import Reader
from tests.fakes.played_thread import play


@pytest.fixture
def database(tmp_path: Path) -> Path:
    play(tmp_path / "agent.db", "hello")
    return tmp_path / "agent.db"


def run(database: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["threads", *arguments, "--db", str(database)])


def test_deleting_needs_a_person_or_yes(database: Path) -> None:
    refused = run(database, "delete", "thread-1")
    as_json = run(database, "delete", "thread-1", "--json")
    done = run(database, "delete", "thread-1", "--yes", "--json")

    assert (refused.exit_code, "nobody is here to ask" in str(refused.exception)) == (1, True)
    assert (as_json.exit_code, "give --yes" in as_json.stderr) == (2, True)
    assert (done.exit_code, json.loads(done.stdout)["deleted"]) == (0, ["thread-1"])


@pytest.mark.parametrize(("answer", "goes"), [("y\n", True), ("\n", False), ("", False), ("nope\n", False)])
def test_on_a_terminal_the_person_is_shown_the_thread_and_asked(
    database: Path, answer: str, goes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Keyboard:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    with Reader.open(database) as reader:
        threads = reader.threads()
    monkeypatch.setattr(sys, "stdin", Keyboard())

    consented = confirm_delete(threads)

    shown = capsys.readouterr().out
    assert (consented, shown.splitlines()[0]) == (goes, "thread-1  1 turn  hello")
    assert shown.endswith("It cannot be undone. [y/N] ")


def test_renaming_tells_the_new_name(database: Path) -> None:
    as_text = run(database, "rename", "thread-1", "a \x1b[31m title")
    as_json = run(database, "rename", "thread-1", "other", "--json")

    assert as_text.stdout == "thread-1 is now called: a \\x1b[31m title\n"
    assert json.loads(as_json.stdout) == {"thread_id": "thread-1", "title": "other"}
