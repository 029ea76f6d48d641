import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import UnknownId
from graph_agent.inspect import END, START, Visits
from graph_agent.storage.sqlite.read_connection import ReadConnection
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


def test_each_node_and_each_way_between_them_is_counted_over_all_turns(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    replies = (calls(("r", "read_a"), ("s", "read_b")), text("done"), text("again"))
    first, second = play(path, "go", "on", replies=replies)

    with read_database(path) as reader:
        (thread,) = reader.threads()
        visits = [reader.visits(thread.thread_id, checkpoint) for checkpoint in (first, second)]

    nodes = {START: 1, "reasoning": 2, "tool_routing": 2, "tool_execution": 1, "observation": 1}
    edges = {
        (START, "reasoning"): 1,
        ("reasoning", "tool_routing"): 1,
        ("tool_routing", "tool_execution"): 1,
        ("tool_execution", "tool_routing"): 1,
        ("tool_routing", "observation"): 1,
        ("observation", "reasoning"): 1,
        ("reasoning", END): 1,
    }
    more = {(START, "reasoning"): 2, ("reasoning", END): 2}
    assert visits == [
        Visits(nodes, edges, None),
        Visits({**nodes, START: 2, "reasoning": 3}, {**edges, **more}, None),
    ]


def test_what_was_pruned_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "go", "on", replies=(text("a"), text("b")))

    with read_database(path) as reader:
        (thread,) = reader.threads()
        oldest = reader.history(thread.thread_id)[-1].checkpoint_id
        thread_id = thread.thread_id
    _forget(path, oldest)

    with read_database(path) as reader:
        visits = reader.visits(thread_id, second)
    assert visits.since is not None
    assert visits.edges == {(START, "reasoning"): 1, ("reasoning", END): 2}
    assert first != second


def _forget(path: Path, checkpoint_id: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (checkpoint_id,))
    connection.close()


def test_the_newest_checkpoints_are_read_without_those_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    play(path, *["go"] * 12, replies=(text("done"),) * 12)
    read: list[tuple[object, ...]] = []

    def counted(self: ReadConnection, sql: str, parameters: Any = ()) -> Iterator[tuple[Any, ...]]:
        for row in stream(self, sql, parameters):
            read.append(row)
            yield row

    stream = ReadConnection.stream
    with read_database(path) as reader:
        (thread,) = reader.threads()
        whole = reader.history(thread.thread_id)
        monkeypatch.setattr(ReadConnection, "stream", counted)
        newest = reader.history(thread.thread_id, 10)

    assert (newest, len(whole) > 30, len(read) < 30) == (whole[:10], True, True)
