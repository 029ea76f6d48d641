import json
from pathlib import Path

from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


def _diff(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["diff", *arguments, "--db", str(path)])


def test_two_checkpoints_differ_in_the_messages_between_them(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two", replies=(text("a"), text("b")))

    there = json.loads(_diff(path, first, second, "--json").stdout)["changes"]
    back = json.loads(_diff(path, second, first, "--json").stdout)["changes"]
    messages = [change for change in there if change["path"].startswith("messages.")]

    assert [(change["op"], change["old"], change["new"]["content"]) for change in messages] == [
        ("added", None, "two"),
        ("added", None, "b"),
    ]
    assert [(change["path"], change["op"]) for change in back if change["path"].startswith("messages.")] == [
        (change["path"], "removed") for change in messages
    ]
    assert _diff(path, second, second).stdout == "nothing differs\n"


def test_an_unknown_id_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    play(path, "one")

    assert "UnknownId" in repr(_diff(path, "no-such", "nor-this").exception)
