from pathlib import Path

from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import text


def test_without_an_id_it_needs_no_database_and_with_one_it_shows_that_thread(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (head,) = play(path, "go", replies=(text("a"),))

    plain = CliRunner().invoke(app, ["graph"], env={"GRAPH_AGENT_HOME": str(tmp_path / "none")})
    shown = CliRunner().invoke(app, ["graph", head[-8:], "--db", str(path), "--no-unicode"])

    assert (plain.exit_code, shown.exit_code) == (0, 0)
    assert ["×" in plain.stdout, "reasoning x1" in shown.stdout, head in shown.stdout] == [False, True, True]
