from typing import Any

import ormsgpack
import pytest

from graph_agent.calls import NEW_MESSAGE
from graph_agent.inspect.channel_values import channel_values
from graph_agent.storage.sqlite.read_store import SqliteReadStore
from tests.fakes.database_rows import Rows, record_of

_TARGET = {"channel_values": {}, "channel_versions": {"messages": "9", "calls": "9"}}


def _checkpoint(rows: Rows, checkpoint_id: str, parent_id: str | None, **values: Any) -> None:
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, parent_checkpoint_id, type, checkpoint)"
        " VALUES ('t1', ?, ?, 'msgpack', ?)",
        checkpoint_id,
        parent_id,
        ormsgpack.packb({"channel_values": values}),
    )


def _write(rows: Rows, checkpoint_id: str, channel: str, value: Any, path: str = "a", idx: int = 0) -> None:
    rows.execute(
        "INSERT INTO writes (thread_id, checkpoint_id, task_id, task_path, idx, channel, type, value)"
        " VALUES ('t1', ?, ?, ?, ?, ?, 'msgpack', ?)",
        checkpoint_id,
        f"task {path}",
        path,
        idx,
        channel,
        ormsgpack.packb(value),
    )


def _snapshot(value: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(7, ormsgpack.packb(value))


def _overwrite(value: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(2, ormsgpack.packb(["langgraph.types", "Overwrite", {"value": value}]))


def _message(identifier: str, content: str = "", kind: str = "human") -> dict[str, str]:
    return {"type": kind, "id": identifier, "content": content}


def _values(rows: Rows, parent_id: str, checkpoint: dict[str, Any] | None = None) -> dict[str, Any]:
    database = SqliteReadStore.open(rows.path)
    values = channel_values(database, "t1", parent_id, checkpoint or _TARGET, {})
    database.close()
    return values


def test_deltas_are_replayed_over_the_nearest_snapshot_in_the_order_of_the_tasks(rows: Rows) -> None:
    _checkpoint(rows, "9-oldest", None, messages=_snapshot([_message("lost")]))
    _checkpoint(rows, "5-middle", "9-oldest", messages=_snapshot([_message("a"), _message("b")]))
    _checkpoint(rows, "1-parent", "5-middle")
    _write(rows, "9-oldest", "messages", [_message("too old")])
    _write(rows, "5-middle", "messages", [_message("a", "changed"), _message("c")])
    _write(rows, "1-parent", "messages", [_message("e")], path="b")
    _write(rows, "1-parent", "messages", _message("d"), path="a", idx=1)
    _write(rows, "1-parent", "messages", [_message("b", kind="remove")], path="a", idx=0)
    _write(rows, "1-parent", "calls", {NEW_MESSAGE: {}, "call_a": record_of("pending")}, path="c")

    values = _values(rows, "1-parent")

    assert values == {
        "messages": [_message("a", "changed"), _message("c"), _message("d"), _message("e")],
        "calls": {"call_a": record_of("pending")},
    }


@pytest.mark.parametrize("reset", [{"__overwrite__": [_message("kept")]}, _overwrite([_message("kept")])])
def test_an_overwrite_begins_anew(rows: Rows, reset: Any) -> None:
    _checkpoint(rows, "c1", None)
    _write(rows, "c1", "messages", [_message("gone")])
    _write(rows, "c1", "messages", reset, idx=1)
    _write(rows, "c1", "messages", [_message("added")], idx=2)

    assert _values(rows, "c1")["messages"] == [_message("kept"), _message("added")]


def test_a_value_that_is_stored_needs_no_ancestors_and_the_engines_own_channels_are_left_out(rows: Rows) -> None:
    stored = {"messages": [_message("a")], "turn": {"steps": 1}, "branch:to:reasoning": None, "__pregel_tasks": []}

    values = _values(rows, "none", {"channel_values": stored, "channel_versions": dict.fromkeys(stored, "1")})

    assert values == {"messages": [_message("a")], "turn": {"steps": 1}}


def test_a_chain_that_bites_its_own_tail_ends(rows: Rows) -> None:
    _checkpoint(rows, "c1", "c2")
    _checkpoint(rows, "c2", "c1")
    _write(rows, "c1", "messages", [_message("a")])
    _write(rows, "c2", "messages", [_message("b")])

    assert _values(rows, "c1")["messages"] == [_message("b"), _message("a")]


def test_without_ancestors_a_channel_that_was_written_is_empty(rows: Rows) -> None:
    assert _values(rows, "pruned") == {"messages": [], "calls": {}}
