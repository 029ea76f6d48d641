"""How writes to the `calls` channel are folded into the records. Knows nothing of the graph framework."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from graph_agent.calls.folding import torn
from graph_agent.calls.record import ToolCallInfo
from graph_agent.calls.status import FINAL, INITIAL, is_allowed

__all__ = ["NEW_MESSAGE", "merge_calls"]

NEW_MESSAGE = "__new_message__"
"""Key of a write whose presence drops the records of the previous model message before the rest applies."""

_REQUIRED = ToolCallInfo.__required_keys__


def merge_calls(
    calls: Mapping[str, ToolCallInfo], writes: Iterable[Mapping[str, Mapping[str, Any]]]
) -> dict[str, ToolCallInfo]:
    """Fold writes, oldest first, into the records; each write maps a call id to a whole or partial record.

    A write that the transition table forbids leaves the record as it was, because an error here would come back at
    each reading of the thread. Batching-invariant: folding two batches one after the other gives the same as both
    together.

    Raises:
        DamagedDatabase: a write is something else.
    """
    try:
        return _merged(calls, writes)
    except (AttributeError, TypeError, KeyError) as error:
        raise torn("calls", error) from error


def _merged(
    calls: Mapping[str, ToolCallInfo], writes: Iterable[Mapping[str, Mapping[str, Any]]]
) -> dict[str, ToolCallInfo]:
    merged = dict(calls)
    for write in writes:
        if NEW_MESSAGE in write:
            merged.clear()
        for call_id, change in write.items():
            if call_id == NEW_MESSAGE:
                continue
            record = _merge_one(merged.get(call_id), change)
            if record is not None:
                merged[call_id] = record
    return merged


def _merge_one(record: ToolCallInfo | None, change: Mapping[str, Any]) -> ToolCallInfo | None:
    if record is None:
        is_whole = change.keys() >= _REQUIRED and change["status"] in INITIAL
        return cast("ToolCallInfo", dict(change)) if is_whole else None
    attempt = record.get("attempt", 1)
    if record["status"] in FINAL or change.get("attempt", attempt) < attempt:
        return record
    if not is_allowed(record["status"], change.get("status", record["status"])):
        return record
    return cast("ToolCallInfo", {**record, **change})
