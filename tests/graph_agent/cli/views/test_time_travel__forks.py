import pytest

from graph_agent.app.threads import Forked
from graph_agent.cli.views.time_travel import print_fork


def test_a_fork_says_where_it_comes_from_what_is_asked_again_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_fork(Forked("f", "t\x1b[2J", "c1", turns=1, open_calls=2), as_json=False)

    assert capsys.readouterr().out == (
        "forked thread t\\x1b[2J at checkpoint c1: 1 turn\n"
        "2 calls of it will be asked about again\n"
        "go on with: graph-agent resume f\n"
    )
