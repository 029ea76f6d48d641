"""What of a stored message can be searched, and its words for the index. Knows the form of a body, and no table."""

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["LONGEST_WORD", "index_text", "plain_text", "searchable"]

LONGEST_WORD = 32
"""As much of a word as an index holds: what is longer is a digest or packed bytes, each of them new."""
_WORD = re.compile(rf"([A-Za-z0-9]{{1,{LONGEST_WORD}}})[A-Za-z0-9]*")


def plain_text(content: Any) -> str:
    """The text of a message's content, whichever of its forms it has."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(plain_text(part) for part in content)
    if isinstance(content, dict):
        return str(content.get("text", "")) or f"[{content.get('type', 'block')}]"
    return "" if content is None else str(content)


def searchable(body: str) -> str:
    """What a message says, and of each call that it asks for the tool and its arguments; a body is JSON text."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(message, dict):
        return ""
    asked = message.get("tool_calls")
    calls = [call for call in asked if isinstance(call, dict)] if isinstance(asked, list) else []
    told = [" ".join([str(call.get("name", "")), *_leaves(call.get("args"))]) for call in calls]
    return "\n".join([plain_text(message.get("content")), *told])


def index_text(body: str) -> str:
    """Its words of ASCII letters and digits; scripts that do not part their words are left to scanning."""
    return " ".join(_WORD.findall(searchable(body)))


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case None | bool():
            return
        case _:
            yield str(value)
