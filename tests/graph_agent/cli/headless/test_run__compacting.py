import json
from pathlib import Path

from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.fakes.played_thread import play

LONG = "some words that are said " * 200


def test_a_thread_is_compacted_by_command_and_a_short_one_is_left_as_it_is(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    play(database, f"{LONG} one", f"{LONG} two", f"{LONG} three")
    listed = CliRunner().invoke(app, ["threads", "list", "--json", "--db", str(database)])
    [thread] = json.loads(listed.stdout)["threads"]

    first, second = (
        CliRunner().invoke(app, ["compact", thread["thread_id"], "--json", "--db", str(database)]) for _ in range(2)
    )

    told = json.loads(first.stdout)["compacted"]
    assert (first.exit_code, second.exit_code, told["how"]) == (0, 0, "outline")
    assert told["tokens_after"] < told["tokens_before"]
    assert json.loads(second.stdout) == {"thread_id": thread["thread_id"], "compacted": None}
