from pathlib import Path

from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play


def test_an_older_checkpoint_is_not_compacted(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    first, _ = play(database, "one", "two")

    done = CliRunner().invoke(app, ["compact", first, "--db", str(database)])

    assert (done.exit_code, "compact takes the thread itself" in str(done.exception)) == (1, True)
