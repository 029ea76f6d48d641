"""What a content field and the fields beside it say: text, and thinking. Knows no stream."""

from collections.abc import Mapping
from typing import Any

__all__ = ["plain_text", "thinking_text"]

_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Names under which servers send thinking; some send the same under two of them."""


def plain_text(content: Any) -> str:
    """Text of a content field, which some servers send as a list of parts."""
    match content:
        case str():
            return content
        case list():
            return "".join(_text_of(part) for part in content)
        case _:
            return ""


def thinking_text(part: Mapping[str, Any]) -> str:
    """Thinking in a field of its own, or among the parts of the content."""
    told = next((value for name in _FIELDS if (value := part.get(name))), None)
    if isinstance(told, str):
        return told
    if isinstance(told, Mapping):
        return plain_text(told.get("text") or told.get("content"))
    content = part.get("content")
    thoughts = (
        [one.get("thinking") for one in content if isinstance(one, Mapping)] if isinstance(content, list) else []
    )
    return "".join(plain_text(thought) for thought in thoughts)


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part.get("text") or "") if isinstance(part, Mapping) else ""
