"""A request as a model without function calling can take it: tools, calls and results all written out as text.

The stored conversation stays as it is; this is only how it is sent. Roles alternate, as the strictest servers want.

What is done about a reply that only writes a call down: the model is told, at most twice. Knows no endpoint.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_usage

from graph_agent.model.openai.text_tool_calls import UNREADABLE, WrittenCall, offered_as, written_calls
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = [
    "MOST_TOLD",
    "Correction",
    "FormatTools",
    "corrected",
    "in_all",
    "reply_with_corrections",
    "to_prompt_protocol",
]

FormatTools = Callable[[Sequence[Mapping[str, Any]]], str]
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


def to_prompt_protocol(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], format_tools: FormatTools
) -> list[BaseMessage]:
    """The conversation with everything in text; the same one gives the same text each time."""
    offer = f"{_HOW}\n{format_tools(tools)}" if tools else ""
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


MOST_TOLD = 2
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)

_TOLD = (
    "No tool was called: your reply holds the call of {name} as text, which runs nothing. Call it by function "
    "calling, or, if you did not mean to call it, answer without writing a call."
)
_AGAIN = "The model wrote the call of {name} as text instead of making it; it is told so ({told} of {most})."
_GIVEN_UP = (
    "The model wrote the call of {name} as text, and nothing of it has run. If this model knows no function calls, "
    'set tool_protocol = "prompt" under [model].'
)


class Correction(NamedTuple):
    """What to do about a reply that is no final answer."""

    request: ModelRequest | None
    """What to ask next; None: the reply is taken as it is."""
    words: str
    """For the user."""


def corrected(request: ModelRequest, reply: AIMessage, told: int) -> Correction | None:
    """What follows from a call in the text of a reply without calls, told about so often; None: it is an answer."""
    offered = [str(tool["function"]["name"]) for tool in request.tools]
    if reply.tool_calls or not offered:
        return None
    # What is written between tags as a call and lacks a name that can be read was meant as one, too.
    written = [call.name for call in _written_correcting(reply.text, offered)]
    meant = [name or "a tool without a name" for name in written if not name or offered_as(name, offered)]
    named = [offered_as(name, offered) or name for name in meant]
    if not named:
        return None
    if told == MOST_TOLD:
        return Correction(None, _GIVEN_UP.format(name=named[0]))
    messages = [*request.messages, AIMessage(reply.text), HumanMessage(_TOLD.format(name=named[0]))]
    words = _AGAIN.format(name=named[0], told=told + 1, most=MOST_TOLD)
    return Correction(replace(request, messages=messages), words)


async def reply_with_corrections(
    ask: Callable[[ModelRequest], Awaitable[AIMessage]], request: ModelRequest, on_delta: OnDelta
) -> AIMessage:
    """The reply, asked for again where it only writes a call down."""
    told, earlier = 0, None
    while True:
        reply = in_all(await ask(request), earlier)
        correction = corrected(request, reply, told)
        if correction is None:
            return reply
        if correction.request is None:
            on_delta(Delta("note", correction.words))
            return reply
        on_delta(Delta("retry", correction.words))
        request, told, earlier = correction.request, told + 1, reply


def _written_correcting(text: str, offered: Sequence[str]) -> list[WrittenCall]:
    """The calls in a text. What cannot be read as one counts outside of code only: code is shown to the user."""
    readable = [call for call in written_calls(text, offered).calls if call is not UNREADABLE]
    outside = written_calls(_CODE.sub("", text), offered).calls
    return [*readable, *(call for call in outside if call is UNREADABLE)]


def in_all(reply: AIMessage, earlier: AIMessage | None) -> AIMessage:
    """The reply with what those before it, which it replaces, have used as well."""
    if earlier is None:
        return reply
    usage = add_usage(reply.usage_metadata, earlier.usage_metadata)
    is_told = reply.usage_metadata or earlier.usage_metadata
    return reply.model_copy(update={"usage_metadata": usage}) if is_told else reply
