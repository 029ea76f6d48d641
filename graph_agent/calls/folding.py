"""How writes to the `messages` channel are folded into the conversation. Knows messages by id and type only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

__all__ = ["merge_messages"]


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
