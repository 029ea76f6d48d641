from pathlib import Path

import pytest

from graph_agent.cli.views.forks import fork_thread
from graph_agent.errors import UsageError
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls


def test_a_fork_says_where_it_comes_from_what_is_asked_again_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = tmp_path / "agent.db"
    [asking] = play(database, "go", replies=(calls(("w", "write_a")),))

    fork_thread(database, asking, None, as_id="f", as_json=False)

    assert capsys.readouterr().out == (
        f"forked thread thread-1 at checkpoint {asking}: 1 turn\n"
        "1 call of it will be asked about again\n"
        "go on with: graph-agent resume f\n"
    )


def test_a_blank_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--as needs an id that is not blank"):
        fork_thread(tmp_path / "agent.db", "x", None, as_id=" ", as_json=False)
