"""How writes are folded into the conversation and into lists of names. Knows messages by id and type only.

The channel `messages` holds the live window: what the next request is made of. What a compaction takes out of it
stays in the checkpoints before it and in the transcript.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from graph_agent.errors import DamagedDatabase

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

__all__ = [
    "DECIDED",
    "REPLACES",
    "SHORTENED",
    "WANTS_WHOLE",
    "in_place_of",
    "merge_messages",
    "merge_names",
    "torn",
]

K = TypeVar("K")
V = TypeVar("V")

REPLACES = "replaces"
"""Key in the `response_metadata` of a summary: the ids of the messages whose place it takes."""
SHORTENED = "shortened"
"""Key in the `response_metadata` of a message that holds less than the one of the same id that it follows."""

WANTS_WHOLE = "wants_whole"
"""Key in the `response_metadata` of a model's message: it does not look back, so each of its calls gets a whole
result, also one that an earlier result holds already."""


DECIDED = "decided"
"""Key in the `additional_kwargs` of a tool message: the call was not run because a person decided so."""


def merge_messages(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    """Fold writes, each a message or a list of messages, oldest first: upsert by id, remove by RemoveMessage.

    A message that replaces others goes where the first of them stood. Deterministic and batching-invariant, as a
    delta channel demands.

    Raises:
        DamagedDatabase: a write is something else.
    """
    try:
        return _merged(messages, writes)
    except (AttributeError, TypeError) as error:
        raise torn("conversation", error) from error


def torn(channel: str, error: Exception) -> DamagedDatabase:
    """What is to be said where a stored write has a shape that is never written."""
    return DamagedDatabase(
        f"what is stored of the {channel} has a shape that is never stored ({error}); the database is torn or was "
        "changed by another program. Put back a backup, or go on from a checkpoint before it: `graph-agent history`"
    )


def _merged(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    merged = {message.id: message for message in messages}
    for write in writes:
        for message in write if isinstance(write, list | tuple) else [write]:
            if message.type == "remove":
                merged.pop(message.id, None)
            elif isinstance(replaced := message.response_metadata.get(REPLACES), list):
                merged = in_place_of(merged, replaced, message.id, message)
            else:
                merged[message.id] = message
    return list(merged.values())


def merge_names(names: list[str], more: Any) -> list[str]:
    """The names with those that are new, in the order of arrival. Never raises: the state stays readable."""
    added = [name for name in more if isinstance(name, str)] if isinstance(more, list | tuple) else []
    return list(dict.fromkeys([*names, *added]))


def in_place_of(merged: dict[K, V], replaced: Sequence[K], key: K, value: V) -> dict[K, V]:
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
