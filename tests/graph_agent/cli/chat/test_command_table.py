from pathlib import Path

import pytest

from graph_agent.cli.chat.command_table import COMMANDS, expand_command
from graph_agent.errors import UsageError


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    made = tmp_path / "home" / "commands"
    made.mkdir(parents=True)
    (made / "review.md").write_text("Read $1.")
    (made / "empty.md").write_text("---\ndescription: nothing\n---\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/review a.py", "Read a.py."),
        ("/review a.py\n", "Read a.py."),
        ("/review\ta.py", "Read a.py."),
        (" /reviews a.py", " /reviews a.py"),
        ("/review\nsecond line", "/review\nsecond line"),
        ("see /review", "see /review"),
        ("/usr/bin/env is gone", "/usr/bin/env is gone"),
        ("/tmp is full", "/tmp is full"),
        ("// is a comment", "// is a comment"),
        ("/ is a division", "/ is a division"),
    ],
)
def test_a_line_that_is_a_command_of_ones_own_stands_for_its_message(
    commands: Path, text: str, message: str
) -> None:
    assert expand_command(text, commands, trusted_once=False) == message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/reviews a.py", r"Unknown command /reviews. Did you mean /review\? Begin the line with a blank"),
        ("/model gpt-9", "/model works in the chat only"),
        ("/", "Unknown command /. Begin the line with a blank"),
    ],
)
def test_a_command_that_is_none_is_not_sent_to_the_model(commands: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        expand_command(text, commands, trusted_once=False)


def test_an_empty_command_is_nothing_to_do(commands: Path) -> None:
    with pytest.raises(UsageError, match="/empty expands to an empty message"):
        expand_command("/empty", commands, trusted_once=False)


def test_the_usage_of_a_command_begins_with_its_name() -> None:
    assert [name for name, command in COMMANDS.items() if command.usage.split()[0] != f"/{name}"] == []


def test_every_description_fits_beside_its_command_in_a_menu_of_60_columns() -> None:
    assert {name: command.does for name, command in COMMANDS.items() if len(command.does) > 46} == {}
