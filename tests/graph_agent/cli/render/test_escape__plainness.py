import pytest

from graph_agent.cli.render.escape import is_plain_terminal, supports_escapes


@pytest.mark.parametrize(
    ("environment", "plain", "moves"),
    [
        ({"TERM": "xterm-256color"}, False, True),
        ({"TERM": "xterm-256color", "GRAPH_AGENT_PLAIN": "1"}, True, True),
        ({"TERM": "xterm-256color", "GRAPH_AGENT_PLAIN": "0"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({}, False, True),
    ],
)
def test_plain_is_what_is_asked_for_and_what_a_dumb_terminal_needs(
    environment: dict[str, str], plain: bool, moves: bool
) -> None:
    assert (is_plain_terminal(environment), supports_escapes(environment)) == (plain, moves)
