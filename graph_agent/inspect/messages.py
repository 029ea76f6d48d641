"""What counts as a message of a conversation, whichever program stored it."""

from typing import Any

__all__ = ["are_messages", "is_message", "role_of"]

_TYPES = frozenset(("human", "ai", "tool", "system", "function", "chat", "developer", "remove"))
_ROLES = frozenset(("user", "assistant", "tool", "system", "function", "developer"))


def is_message(value: Any) -> bool:
    """Whether it is a message: of LangChain, or one that says its role."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind = str(value.get("type")).removesuffix("MessageChunk").lower()
    return kind in _TYPES or value.get("role") in _ROLES


def are_messages(value: Any) -> bool:
    """Whether it is a conversation."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def role_of(message: dict[str, Any]) -> str:
    """Who says it, in the words of the model's protocol."""
    kind = str(message.get("type") or message.get("role")).removesuffix("MessageChunk").lower()
    return {"human": "user", "ai": "assistant"}.get(kind, kind)
