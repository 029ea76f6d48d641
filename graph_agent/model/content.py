"""What a content field and the fields beside it say: text, and thinking. Knows no stream."""

from collections.abc import Mapping
from typing import Any

__all__ = ["REASONING_FIELDS", "plain_text", "thinking_text"]

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Names under which servers send thinking; some send the same under two of them."""
_THOUGHT_TYPES = ("thinking", "reasoning", "reasoning.text", "reasoning.summary")
"""Types of parts of the content that are thinking."""
_TEXTS = ("thinking", "reasoning", "text", "summary", "content")
"""Names under which a thought holds its text, or parts of it."""


def plain_text(content: Any) -> str:
    """Text of a content field, which may be a part or a list of them; thinking among them is none."""
    parts = content if isinstance(content, list) else [content]
    return "".join(_text_of(part) for part in parts)


def thinking_text(part: Mapping[str, Any]) -> str:
    """Thinking in a field of its own, or among the parts of the content."""
    told = next((value for name in REASONING_FIELDS if (value := part.get(name))), None)
    if told is not None:
        return _thought(told)
    content = part.get("content")
    return "".join(_thought(one) for one in content if _is_thought(one)) if isinstance(content, list) else ""


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    is_text = isinstance(part, Mapping) and not _is_thought(part)
    return str(part.get("text") or "") if is_text else ""


def _is_thought(part: Any) -> bool:
    return isinstance(part, Mapping) and ("thinking" in part or part.get("type") in _THOUGHT_TYPES)


def _thought(told: Any) -> str:
    """A thought, which may be a text, an object that holds one, or a list of these."""
    match told:
        case str():
            return told
        case list():
            return "".join(_thought(one) for one in told)
        case Mapping():
            return _thought(next((value for name in _TEXTS if (value := told.get(name))), ""))
        case _:
            return ""
