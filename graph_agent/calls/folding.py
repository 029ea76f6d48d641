"""How writes are folded into the conversation and into lists of names. Knows messages by id and type only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

__all__ = ["merge_messages", "merge_names"]


def merge_messages(messages: "list[AnyMessage]", writes: Sequence[Any]) -> "list[AnyMessage]":
    """Fold writes, each a message or a list of messages, oldest first: upsert by id, remove by RemoveMessage.

    Deterministic and batching-invariant, as a delta channel demands.
    """
    merged = {message.id: message for message in messages}
    for write in writes:
        for message in write if isinstance(write, list | tuple) else [write]:
            if message.type == "remove":
                merged.pop(message.id, None)
            else:
                merged[message.id] = message
    return list(merged.values())


def merge_names(names: list[str], more: Any) -> list[str]:
    """The names with those that are new, in the order of arrival. Never raises: the state stays readable."""
    added = [name for name in more if isinstance(name, str)] if isinstance(more, list | tuple) else []
    return list(dict.fromkeys([*names, *added]))
