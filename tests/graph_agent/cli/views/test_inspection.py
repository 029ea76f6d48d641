import pytest

from graph_agent.cli.views.inspection import find_value
from graph_agent.errors import UsageError


def test_keys_that_hold_dots_are_found() -> None:
    whole = {"values": {"calls": {"functions.bash:0": {"status": "pending"}}}}

    assert find_value(whole, "calls.functions.bash:0.status") == "pending"


@pytest.mark.parametrize(
    ("piece", "words"),
    [
        ("nothing", "there is no 'nothing'; at that place is messages, turn"),
        ("messages.7", "there is no '7'; at that place is a list of 1"),
        ("messages.0.x", "there is no 'x'; at that place is a plain value"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(piece: str, words: str) -> None:
    whole = {"values": {"messages": ["go"], "turn": {}}}

    with pytest.raises(UsageError, match=words):
        find_value(whole, piece)
