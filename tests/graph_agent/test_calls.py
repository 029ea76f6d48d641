import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage

from graph_agent.calls import (
    FINAL,
    INITIAL,
    NEW_MESSAGE,
    REPLACES,
    STATUSES,
    TRANSITIONS,
    ToolCallInfo,
    allowed_answers,
    args_digest,
    completed_tool_calls,
    is_allowed,
    merge_calls,
    merge_messages,
    merge_names,
    pending_tool_calls,
    process_marker,
    require_allowed,
)
from graph_agent.errors import DamagedDatabase, ForbiddenTransition


def record(call_id: str, status: str, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"tool_name": "bash", "arguments": {}, "result": None, "error_msg": None}
    return {"call_id": call_id, **empty, "status": status, "attempt": 1, **fields}


def test_the_table_has_exactly_the_rows_the_recovery_design_rests_on() -> None:
    rows = {source: {step.target for step in TRANSITIONS if step.source == source} for source in STATUSES}

    assert {source: targets for source, targets in rows.items() if targets} == {
        "pending": {"awaiting_approval", "executing", "error", "cancelled"},
        "awaiting_approval": {"pending", "cancelled"},
        "executing": {"success", "error", "interrupted"},
        "interrupted": {"pending", "cancelled", "success"},
    }
    assert set(FINAL) == {"success", "error", "cancelled"}
    assert not any(is_allowed(source, target) for source, target in itertools.product(FINAL, STATUSES))


def test_a_record_is_never_created_as_interrupted_or_successful() -> None:
    assert set(STATUSES) - INITIAL == {"interrupted", "success"}


def test_a_forbidden_change_is_refused_with_the_allowed_ones_named() -> None:
    allowed = r"'c1'.*'interrupted' to 'executing'.*cancelled, pending, success"
    with pytest.raises(ForbiddenTransition, match=allowed):
        require_allowed("c1", "interrupted", "executing")


@pytest.mark.parametrize("requires_input", [False, True])
@pytest.mark.parametrize("status", STATUSES)
def test_a_question_takes_the_answers_of_its_kind_and_nothing_else_takes_any(
    status: str, requires_input: bool
) -> None:
    approval = ("answer", "reject") if requires_input else ("approve", "edit", "reject")
    kinds = {"awaiting_approval": approval, "interrupted": ("retry", "done", "cancel")}

    assert allowed_answers({"status": status, "requires_input": requires_input}) == kinds.get(status, ())


def test_every_call_is_either_pending_or_completed() -> None:
    calls: Any = {status: record(status, status) for status in STATUSES}

    pending, completed = (
        [call["call_id"] for call in view(calls)] for view in (pending_tool_calls, completed_tool_calls)
    )

    assert pending == ["pending", "awaiting_approval", "executing", "interrupted"]
    assert completed == ["success", "error", "cancelled"]


def test_the_digest_depends_on_all_that_was_shown_but_not_on_the_order_of_the_arguments() -> None:
    shown: Any = ("c", "bash", 1, {"a": 1, "b": 2})
    others: Any = [("d", *shown[1:]), ("c", "sh", *shown[2:]), ("c", "bash", 2, shown[3]), (*shown[:3], {"a": 1})]

    assert args_digest(*shown) == args_digest("c", "bash", 1, {"b": 2, "a": 1})
    assert len({args_digest(*key) for key in (shown, *others)}) == 5


def test_each_run_call_and_attempt_has_a_process_marker_of_its_own_and_always_the_same() -> None:
    keys = [("run", "c1", 1), ("other", "c1", 1), ("run", "c2", 1), ("run", "c1", 2), ("run", "c\udcff", 1)]
    markers = [process_marker(*key) for key in keys]

    assert len({*markers}) == len(keys)
    assert [process_marker(*key) for key in keys] == markers
    assert all(marker.isalnum() for marker in markers)


_IDS = ("a", "b", NEW_MESSAGE)
_CHANGES = st.one_of(
    st.builds(record, st.sampled_from(_IDS), st.sampled_from(STATUSES)),
    st.fixed_dictionaries({"status": st.sampled_from(STATUSES), "attempt": st.integers(1, 3)}),
    st.fixed_dictionaries({}, optional={"result": st.text(), "attempt": st.integers(1, 3)}),
)
_CALL_WRITES = st.lists(st.dictionaries(st.sampled_from(_IDS), _CHANGES, max_size=3), max_size=8)


@pytest.mark.slow
@given(_CALL_WRITES, _CALL_WRITES)
def test_folding_two_batches_of_calls_gives_the_same_as_folding_them_together(first: Any, second: Any) -> None:
    assert merge_calls(merge_calls({}, first), second) == merge_calls({}, first + second)


@given(_CALL_WRITES)
def test_every_change_of_status_that_gets_through_is_in_the_table(writes: list[dict[str, Any]]) -> None:
    before: dict[str, ToolCallInfo] = {}
    for write in writes:
        after = merge_calls(before, [write])
        for call_id in (before.keys() & after.keys()) if NEW_MESSAGE not in write else ():
            moved = before[call_id]["status"] != after[call_id]["status"]
            assert not moved or is_allowed(before[call_id]["status"], after[call_id]["status"])
            assert before[call_id]["status"] not in FINAL or after[call_id] == before[call_id]
        before = after


_FINISHED, _RETRIED = record("a", "error", error_msg="no such file"), record("a", "pending", attempt=2)


@pytest.mark.parametrize(
    ("writes", "calls"),
    [
        (
            [{"a": _FINISHED}, {"a": {"status": "executing", "attempt": 2}}, {"a": record("a", "pending")}],
            [_FINISHED],
        ),
        ([{"a": _RETRIED}, {"a": {"status": "executing", "attempt": 1}}], [_RETRIED]),
        ([{"a": {"status": "executing"}}], []),
        ([{"a": _FINISHED}, {NEW_MESSAGE: {}, "b": record("b", "pending")}], [record("b", "pending")]),
    ],
    ids=["finished records stay", "earlier attempts are late", "partial record of an unknown call", "new message"],
)
def test_writes_that_come_too_late_change_nothing(writes: list[Any], calls: list[Any]) -> None:
    assert list(merge_calls({}, writes).values()) == calls


_MESSAGES = st.one_of(
    st.builds(lambda key, text: HumanMessage(text, id=key), st.sampled_from("abc"), st.text(max_size=3)),
    st.builds(lambda key: RemoveMessage(id=key), st.sampled_from("abc")),
    st.builds(
        lambda key, gone: HumanMessage("sum", id=key, response_metadata={REPLACES: gone}),
        st.sampled_from("abs"),
        st.lists(st.sampled_from("abcd"), max_size=3),
    ),
)
_MESSAGE_WRITES = st.lists(st.one_of(_MESSAGES, st.lists(_MESSAGES, max_size=3)), max_size=6)


@given(_MESSAGE_WRITES, _MESSAGE_WRITES)
def test_folding_two_batches_of_messages_gives_the_same_as_folding_them_together(first: Any, second: Any) -> None:
    assert merge_messages(merge_messages([], first), second) == merge_messages([], first + second)


def test_a_message_with_a_known_id_takes_the_place_of_the_old_one() -> None:
    old: list[AnyMessage] = [HumanMessage("a", id="1"), AIMessage("b", id="2")]

    assert merge_messages(old, [HumanMessage("c", id="1")]) == [HumanMessage("c", id="1"), AIMessage("b", id="2")]


@pytest.mark.parametrize(
    ("replaced", "left"),
    [(["c", "b", "gone long ago"], ["a", "s", "d"]), (7, ["a", "b", "c", "d", "s"])],
    ids=["in the place of the first", "anything else than a list replaces nothing"],
)
def test_a_summary_takes_the_place_of_the_messages_it_replaces(replaced: Any, left: list[str]) -> None:
    summary = HumanMessage("b and c", id="s", response_metadata={REPLACES: replaced})

    once = merge_messages([HumanMessage(key, id=key) for key in "abcd"], [summary])

    assert [message.id for message in once] == left
    assert merge_messages(once, [summary]) == once


@pytest.mark.parametrize(
    ("more", "names"),
    [(["b", "a", "c"], ["a", "b", "c"]), ([], ["a"]), ("b", ["a"]), (None, ["a"]), ([1, "b"], ["a", "b"])],
)
def test_names_are_added_once_in_the_order_of_arrival_and_nothing_odd_raises(more: Any, names: list[str]) -> None:
    assert merge_names(["a"], more) == names


@pytest.mark.parametrize(
    ("merge", "write"),
    [
        *((merge_messages, write) for write in (5, [5], "hi")),
        *((merge_calls, write) for write in (5, ["c1"], {"c1": 5})),
    ],
)
def test_a_write_of_another_shape_is_named_as_damage(merge: Any, write: Any) -> None:
    with pytest.raises(DamagedDatabase, match=r"The \w+ has a shape that is never stored"):
        merge([] if merge is merge_messages else {}, [write])
