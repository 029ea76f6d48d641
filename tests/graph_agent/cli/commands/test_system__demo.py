from typer.testing import CliRunner

from graph_agent.cli.main import app


def test_help_says_what_it_shows_and_how_to_keep_its_files() -> None:
    shown = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "100"})

    assert shown.exit_code == 0
    assert all(words in shown.stdout for words in ("kill -9", "--yes", "--keep"))
