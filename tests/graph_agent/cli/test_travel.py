import json
from pathlib import Path

from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play


def test_fork_takes_a_part_of_an_id_and_prints_the_new_thread_as_json(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["fork", first[-12:], "--as", "mine", "--db", str(database), "--json"])

    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {"thread_id": "mine", "parent_thread": "thread-1", "checkpoint_id": first, "turns": 1, "open_calls": 0},
    )
