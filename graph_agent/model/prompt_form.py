"""A request as a model without function calling can take it: tools, calls and results all written out as text.

The stored conversation stays as it is; this is only how it is sent. Roles alternate, as the strictest servers want.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

__all__ = ["Rendering", "in_prompt_form"]

Rendering = Callable[[Sequence[Mapping[str, Any]]], str]
"""Writes function declarations out as text."""

_HOW = """\
# Tools

To use a tool, end your reply with its call in exactly this form, outside of any code block:

<tool_call>
{"name": "TOOL", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>

Each call is one JSON object in a pair of tags of its own; several calls may follow one another. Stop after them: \
the next message brings what came of each, as <tool_result>. Never write a <tool_result> yourself. Where no tool \
is needed, answer in plain text.

These are the tools:
"""


def in_prompt_form(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], rendered: Rendering
) -> list[BaseMessage]:
    """The conversation with everything in text; the same one gives the same text each time."""
    offer = f"{_HOW}\n{rendered(tools)}" if tools else ""
    written = [_written(message) for message in messages]
    if offer:
        begins = bool(written) and isinstance(written[0], SystemMessage)
        said = [written.pop(0).text] if begins else []
        written.insert(0, SystemMessage("\n\n".join([*said, offer])))
    together: list[BaseMessage] = []
    for message in written:
        if together and type(together[-1]) is type(message):
            together[-1] = _joined(together[-1], message)
        else:
            together.append(message)
    return together


def _written(message: BaseMessage) -> BaseMessage:
    match message:
        case AIMessage():
            parts = [message.text] if message.text.strip() else []
            return AIMessage("\n\n".join([*parts, *map(_call, message.tool_calls)]))
        case ToolMessage():
            return HumanMessage(_result(message))
        case SystemMessage():
            return SystemMessage(message.text)
        case _:
            return HumanMessage(message.content)


def _call(call: Mapping[str, Any]) -> str:
    told = json.dumps({"name": call["name"], "arguments": call["args"]}, ensure_ascii=False)
    return f"<tool_call>\n{told}\n</tool_call>"


def _result(message: ToolMessage) -> Any:
    """The result between tags, which nothing within it can close; what is no text stands behind it."""
    said = message.text.replace("</tool_result", "<\\/tool_result")
    name = str(message.name or "tool").replace('"', "")
    text = f'<tool_result name="{name}">\n{said}\n</tool_result>'
    others = _not_text(message.content)
    return [{"type": "text", "text": text}, *others] if others else text


def _not_text(content: Any) -> list[Any]:
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]


def _joined(first: BaseMessage, second: BaseMessage) -> BaseMessage:
    kind = type(first)
    if isinstance(first.content, str) and isinstance(second.content, str):
        return kind(f"{first.content}\n\n{second.content}")
    return kind([*_parts(first.content), *_parts(second.content)])


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
