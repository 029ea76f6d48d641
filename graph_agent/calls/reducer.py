"""How writes to the channels `messages`, `calls` and lists of names are merged into the state.

The channel `messages` holds the context that the next request is made of. Messages that a compaction removes stay
in the transcript and in earlier checkpoints.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graph_agent.calls.record import ToolCallInfo
from graph_agent.calls.status import FINAL, INITIAL, is_allowed
from graph_agent.errors import DamagedDatabase

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage


__all__ = [
    "FULL_RESULTS",
    "NEW_MESSAGE",
    "REPLACES",
    "SHORTENED",
    "USER_DECISION",
    "merge_calls",
    "merge_messages",
    "merge_names",
    "replace_entries",
    "torn",
]

K = TypeVar("K")
V = TypeVar("V")

REPLACES = "replaces"
"""Key in the `response_metadata` of a summary: the ids of the messages whose place it takes."""
SHORTENED = "shortened"
"""Key in the `response_metadata` of a message that holds less than the one of the same id that it follows."""

FULL_RESULTS = "wants_whole"
"""Key in the `response_metadata` of a model's message: it does not look back, so each of its calls gets a whole
result, also one that an earlier result holds already."""


USER_DECISION = "decided"
"""Key in the `additional_kwargs` of a tool message: the call was not run because a person decided so."""


def merge_messages(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    """Fold writes, each a message or a list of messages, oldest first: upsert by id, remove by RemoveMessage.

    A message that replaces others goes where the first of them stood. Deterministic and batching-invariant, as a
    delta channel demands.

    Raises:
        DamagedDatabase: a write is something else.
    """
    try:
        return _merged_folding(messages, writes)
    except (AttributeError, TypeError) as error:
        raise torn("conversation", error) from error


def torn(channel: str, error: Exception) -> DamagedDatabase:
    """What is to be said where a stored write has a shape that is never written."""
    return DamagedDatabase(
        f"what is stored of the {channel} has a shape that is never stored ({error}); the database is torn or was "
        "changed by another program. Put back a backup, or go on from a checkpoint before it: `graph-agent history`"
    )


def _merged_folding(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    merged = {message.id: message for message in messages}
    for write in writes:
        for message in write if isinstance(write, list | tuple) else [write]:
            if message.type == "remove":
                merged.pop(message.id, None)
            elif isinstance(replaced := message.response_metadata.get(REPLACES), list):
                merged = replace_entries(merged, replaced, message.id, message)
            else:
                merged[message.id] = message
    return list(merged.values())


def merge_names(names: list[str], more: Any) -> list[str]:
    """The names with those that are new, in the order of arrival. Never raises: the state stays readable."""
    added = [name for name in more if isinstance(name, str)] if isinstance(more, list | tuple) else []
    return list(dict.fromkeys([*names, *added]))


def replace_entries(merged: dict[K, V], replaced: Sequence[K], key: K, value: V) -> dict[K, V]:
    """The mapping with one entry in the place of several; at the end where none of them is there."""
    gone = {*replaced, key}
    folded: dict[K, V] = {}
    for old, entry in merged.items():
        if old not in gone:
            folded[old] = entry
        elif key not in folded:
            folded[key] = value
    folded.setdefault(key, value)
    return folded


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
