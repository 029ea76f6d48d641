from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UnknownId
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text


def test_each_checkpoint_names_the_nodes_that_made_it_what_they_changed_and_which_calls(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (head,) = play(path, "go", replies=(calls(("r", "read_a")), text("done")))

    with read_database(path) as reader:
        (thread,) = reader.threads()
        entries = reader.history(thread.thread_id)

    assert [(entry.node, entry.changed, entry.calls) for entry in reversed(entries)] == [
        ("", (), ()),
        ("", ("messages", "mode", "turn"), ()),
        ("reasoning", ("messages", "turn", "usage"), ()),
        ("tool_routing", ("calls",), ("r",)),
        ("tool_execution", ("calls",), ("r",)),
        ("observation", ("messages",), ()),
        ("reasoning", ("messages", "turn", "usage"), ()),
    ]
    assert [entry.checkpoint_id for entry in entries if entry.is_head] == [head]
    assert [entry.parent_id for entry in entries] == [*(entry.checkpoint_id for entry in entries[1:]), None]
    assert [entry.step for entry in entries] == list(range(5, -2, -1))


def test_a_thread_nobody_knows_has_no_history(tmp_path: Path) -> None:
    play(tmp_path / "a.db", "go", replies=())

    with read_database(tmp_path / "a.db") as reader, pytest.raises(UnknownId):
        reader.history("other")
