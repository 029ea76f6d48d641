import json
from pathlib import Path

from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


def test_the_ids_that_are_listed_are_ids_that_other_commands_take(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two", replies=(text("a"), text("b")))

    listed = CliRunner().invoke(app, ["history", "--db", str(path), "--json"])
    shown = json.loads(listed.stdout)
    inspected = CliRunner().invoke(app, ["inspect", shown["checkpoints"][-1]["checkpoint_id"], "--db", str(path)])

    assert (listed.exit_code, inspected.exit_code) == (0, 0)
    assert shown["checkpoints"][0]["checkpoint_id"] == second
    assert first in [entry["checkpoint_id"] for entry in shown["checkpoints"]]
