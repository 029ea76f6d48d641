import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Overwrite, Send

from graph_agent.errors import DamagedDatabase, InternalError
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage.serializer import BoundedCache, StrictSerializer, unwrap_value

_REPLY = AIMessage("text", id="m1", tool_calls=[{"id": "c1", "name": "bash", "args": {"command": "ls"}}])
_VALUES: list[Any] = [
    None,
    b"bytes",
    {"a": [1, 2.5, True, None, "ü"], "b": {"1": {}}},
    {1: "numbers are keys too"},
    _REPLY,
    [HumanMessage("hi", id="m2"), SystemMessage("s", id="m3"), ToolMessage("r", tool_call_id="c1", id="m4")],
    RemoveMessage(id="m1"),
    _DeltaSnapshot([_REPLY]),
    [Send("tool_execution", {"call": {"call_id": "c1"}, "messages": [_REPLY]})],
    Interrupt(value={"approve": [["c1", "digest"]]}, id="i1"),
    Overwrite([1]),
]


def _crafted(code: int, *content: Any) -> tuple[str, bytes]:
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content)))


@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_what_a_checkpoint_may_hold_comes_back_as_it_was(value: Any) -> None:
    serializer = StrictSerializer()

    assert serializer.loads_typed(serializer.dumps_typed(value)) == value


@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_the_frameworks_own_serializer_reads_the_same_bytes(value: Any) -> None:
    written = StrictSerializer().dumps_typed(value)

    assert JsonPlusSerializer(allowed_msgpack_modules=None).loads_typed(written) == value


def test_lone_surrogates_are_replaced_instead_of_losing_the_step() -> None:
    serializer = StrictSerializer()

    reply = AIMessage("", id="m1", tool_calls=[{"id": "c1", "name": "bash", "args": {"\ud800": ["\udfff"]}}])

    assert serializer.loads_typed(serializer.dumps_typed([{"te\ud800xt": "a\ud800b"}, reply])) == [
        {"te?xt": "a?b"},
        AIMessage("", id="m1", tool_calls=[{"id": "c1", "name": "bash", "args": {"?": ["?"]}}]),
    ]


def test_what_a_task_raised_is_kept_as_its_text() -> None:
    serializer = StrictSerializer()

    assert serializer.loads_typed(serializer.dumps_typed(ValueError("no"))) == "ValueError('no')"


@pytest.mark.parametrize(
    "value",
    [{1, 2}, datetime(2026, 1, 1, tzinfo=UTC), Path("/x"), object()],
    ids=lambda value: type(value).__name__,
)
def test_a_rich_object_in_the_state_is_refused_when_written(value: object) -> None:
    with pytest.raises(InternalError, match="the state may hold JSON values and messages only"):
        StrictSerializer().dumps_typed({"deep": [value]})


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 6])
def test_a_crafted_row_neither_runs_nor_loads(code: int, tmp_path: Path) -> None:
    target = tmp_path / "owned"
    argument: Any = {"command": f"touch {target}"} if code in (2, 4, 5) else f"touch {target}"
    crafted = _crafted(code, "os", "system", [argument] if code == 1 else argument, "run")

    with pytest.raises(DamagedDatabase, match=r"os\.system, which this program never writes"):
        StrictSerializer().loads_typed(crafted)

    assert not target.exists()


@pytest.mark.parametrize("tag", ["pickle", "json", "bytearray", "unheard-of"])
def test_a_type_tag_that_is_never_written_is_not_read(tag: str) -> None:
    with pytest.raises(DamagedDatabase, match=f"has the type '{tag}'"):
        StrictSerializer().loads_typed((tag, b"{}"))


def test_torn_bytes_are_reported_as_damage() -> None:
    tag, content = StrictSerializer().dumps_typed({"a": "long enough to be cut"})

    with pytest.raises(DamagedDatabase, match="cannot be read"):
        StrictSerializer().loads_typed((tag, content[:-3]))


def test_a_graphs_schema_never_widens_what_is_read() -> None:
    serializer = StrictSerializer()

    assert serializer.with_msgpack_allowlist([("os", "system")]) is serializer


def test_snapshots_and_overwrites_are_taken_out_of_their_wrapping_and_other_values_stay() -> None:
    stored = [_DeltaSnapshot([1]), Overwrite([2]), [3], None]

    assert [unwrap_value(value) for value in stored] == [[1], [2], [3], None]


def test_the_same_stored_message_is_the_same_object_each_time_and_a_changed_one_is_another() -> None:
    serializer = StrictSerializer()
    long, short = (serializer.dumps_typed([HumanMessage(text, id="m1")]) for text in ("long text", "short"))

    (first,), (changed,), (again,) = (serializer.loads_typed(stored) for stored in (long, short, long))

    assert first is again
    assert (first.content, changed.content) == ("long text", "short")


def test_the_least_recently_used_value_is_dropped_first() -> None:
    kept: BoundedCache[str, int] = BoundedCache(10)
    kept.put("a", 1, 4)
    kept.put("b", 2, 4)

    kept.get("a")
    kept.put("c", 3, 4)

    assert [kept.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_that_is_stored_again_counts_once_and_one_that_is_too_large_is_not_kept() -> None:
    kept: BoundedCache[str, int] = BoundedCache(10)

    values = [kept.put("a", number, 8) for number in range(3)]
    heavy = kept.put("b", 9, 11)

    assert (values, heavy) == ([0, 1, 2], 9)
    assert [kept.get(key) for key in "ab"] == [2, None]
    kept.put("c", 3, 10)
    assert [kept.get(key) for key in "ac"] == [None, 3]


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True]}, "ü 漢", []])
def test_plain_values_come_back_from_their_text(value: Any) -> None:
    assert json.loads(json_text(value)) == value


def test_odd_values_become_text_and_odd_keys_are_left_out() -> None:
    odd = {
        "when": date(2026, 1, 1),
        ("a", "b"): 1,
        3: "three",
        "bad": "\ud800",
        "no": float("nan"),
        "all": float("-inf"),
    }

    text = json_text(odd)

    assert json.loads(text) == {"when": "2026-01-01", "3": "three", "bad": "?", "no": "NaN", "all": "-Infinity"}


def test_lone_surrogates_are_replaced_and_everything_else_stays() -> None:
    assert storable("a\ud800ü\x00") == "a?ü\x00"
