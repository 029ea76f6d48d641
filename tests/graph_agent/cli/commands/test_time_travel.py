import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Name a CHECKPOINT"),
        (("c1", "--files-only", "--chat-only"), "cannot be combined"),
        (("c1", "--json"), "--yes or --dry-run"),
    ],
)
def test_rewind_refuses_options_that_make_no_sense_together(arguments: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(app, ["rewind", *arguments])

    assert done.exit_code == 2
    assert told in done.stderr


def test_rewind_puts_the_conversation_back_and_tells_it_as_json(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, second = play(database, "one", "two")

    done = CliRunner().invoke(app, ["rewind", first, "--yes", "--json", "--db", str(database)])

    told = json.loads(done.stdout)
    assert (done.exit_code, told["checkpoint_id"], told["done"], told["files"]) == (0, first, True, [])
    assert told["head"] > second


def test_fork_takes_a_part_of_an_id_and_prints_the_new_thread_as_json(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["fork", first[-12:], "--as", "mine", "--db", str(database), "--json"])

    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {"thread_id": "mine", "parent_thread": "thread-1", "checkpoint_id": first, "turns": 1, "open_calls": 0},
    )


def test_an_older_checkpoint_is_not_compacted(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["compact", first, "--db", str(database)])

    assert (done.exit_code, first in str(done.exception)) == (1, True)
