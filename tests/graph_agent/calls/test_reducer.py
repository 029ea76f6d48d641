from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graph_agent.calls import FINAL, NEW_MESSAGE, STATUSES, ToolCallInfo, is_allowed, merge_calls


def record(call_id: str, status: str, **fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "call_id": call_id,
        "tool_name": "bash",
        "arguments": {},
        "result": None,
        "error_msg": None,
    }
    return {**base, "status": status, "attempt": 1, **fields}


def merged(*writes: dict[str, Any]) -> dict[str, ToolCallInfo]:
    return merge_calls({}, writes)


_IDS = ("a", "b", NEW_MESSAGE)
_CHANGES = st.one_of(
    st.builds(record, st.sampled_from(_IDS), st.sampled_from(STATUSES)),
    st.fixed_dictionaries({"status": st.sampled_from(STATUSES), "attempt": st.integers(1, 3)}),
    st.fixed_dictionaries({}, optional={"result": st.text(), "attempt": st.integers(1, 3)}),
)
_WRITES = st.lists(st.dictionaries(st.sampled_from(_IDS), _CHANGES, max_size=3), max_size=8)


@given(_WRITES, _WRITES)
def test_folding_two_batches_gives_the_same_as_folding_them_together(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    assert merge_calls(merge_calls({}, first), second) == merge_calls({}, first + second)


@given(_WRITES)
def test_every_change_of_status_that_gets_through_is_in_the_table(writes: list[dict[str, Any]]) -> None:
    before: dict[str, ToolCallInfo] = {}
    for write in writes:
        after = merge_calls(before, [write])
        for call_id in (before.keys() & after.keys()) if NEW_MESSAGE not in write else ():
            moved = before[call_id]["status"] != after[call_id]["status"]
            assert not moved or is_allowed(before[call_id]["status"], after[call_id]["status"])
            assert before[call_id]["status"] not in FINAL or after[call_id] == before[call_id]
        before = after


def test_a_finished_record_survives_whatever_is_written_later() -> None:
    finished = record("a", "error", error_msg="no such file")

    calls = merged({"a": finished}, {"a": {"status": "executing", "attempt": 2}}, {"a": record("a", "pending")})

    assert calls == {"a": finished}


def test_a_write_from_an_earlier_attempt_changes_nothing() -> None:
    retried = record("a", "pending", attempt=2)

    calls = merged({"a": retried}, {"a": {"status": "executing", "attempt": 1}})

    assert calls == {"a": retried}


def test_a_partial_write_about_an_unknown_call_is_dropped() -> None:
    assert merged({"a": {"status": "executing"}}) == {}


def test_a_new_model_message_drops_the_records_of_the_last_one() -> None:
    calls = merged({"a": record("a", "error")}, {NEW_MESSAGE: {}, "b": record("b", "pending")})

    assert calls == {"b": record("b", "pending")}
