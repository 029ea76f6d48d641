"""Requests for models without function calling: tools, calls and results are sent as text, in alternating roles.

Also asks again when a model that has function calling only writes a call into its text.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import add_usage

from graph_agent.model.openai.text_tool_calls import UNREADABLE, match_tool_name, parse_text_tool_calls
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["MAX_CORRECTIONS", "FormatTools", "add_earlier_usage", "reply_with_corrections", "to_prompt_protocol"]

FormatTools = Callable[[Sequence[Mapping[str, Any]]], str]
"""Formats function declarations as text."""

_INSTRUCTIONS = """\
# Tools

To use a tool, end your reply with its call in exactly this form, outside of any code block:

<tool_call>
{"name": "TOOL", "arguments": {"ARGUMENT": "VALUE"}}
</tool_call>

Each call is one JSON object in its own pair of tags; several calls may follow one another. Stop after them: the \
next message has the result of each, as <tool_result>. Never write a <tool_result> yourself. If you need no tool, \
answer in plain text.

These are the tools:
"""

MAX_CORRECTIONS = 2
_CODE_BLOCK = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)

_CORRECTION = (
    "No tool was called: your reply contains the call of {name} as text, which runs nothing. To call it, use "
    "function calling. If you did not mean to call it, answer without writing a call."
)
_RETRY = "The model wrote the call of {name} as text instead of making it. Asking again ({number} of {most})."
_GIVE_UP = (
    "The model wrote the call of {name} as text, and it was not run. If this model has no function calling, "
    'set tool_protocol = "prompt" under [model].'
)


def to_prompt_protocol(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], format_tools: FormatTools
) -> list[BaseMessage]:
    """The conversation with everything as text; the same conversation always gives the same text."""
    texts = [_as_text(message) for message in messages]
    if tools:
        instructions = f"{_INSTRUCTIONS}\n{format_tools(tools)}"
        if texts and isinstance(texts[0], SystemMessage):
            instructions = f"{texts.pop(0).text}\n\n{instructions}"
        texts.insert(0, SystemMessage(instructions))
    merged: list[BaseMessage] = []
    for message in texts:
        if not merged or type(merged[-1]) is not type(message):
            merged.append(message)
            continue
        contents: list[Any] = [merged[-1].content, message.content]
        if all(isinstance(content, str) for content in contents):
            merged[-1] = type(message)("\n\n".join(contents))
        else:
            # Parts that are no text, such as images, stay parts.
            parts = [one if isinstance(one, list) else [{"type": "text", "text": one}] for one in contents]
            merged[-1] = type(message)([part for each in parts for part in each])
    return merged


def _as_text(message: BaseMessage) -> BaseMessage:
    match message:
        case AIMessage():
            calls = [
                json.dumps({"name": call["name"], "arguments": call["args"]}, ensure_ascii=False)
                for call in message.tool_calls
            ]
            text = [message.text] if message.text.strip() else []
            return AIMessage("\n\n".join([*text, *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]))
        case ToolMessage():
            return HumanMessage(_tool_result(message))
        case SystemMessage():
            return SystemMessage(message.text)
        case _:
            return HumanMessage(message.content)


def _tool_result(message: ToolMessage) -> Any:
    """The result between tags that nothing in it can close, followed by the parts that are no text."""
    result = message.text.replace("</tool_result", "<\\/tool_result")
    name = str(message.name or "tool").replace('"', "")
    text = f'<tool_result name="{name}">\n{result}\n</tool_result>'
    parts = message.content if isinstance(message.content, list) else []
    others = [part for part in parts if isinstance(part, dict) and part.get("type") != "text"]
    return [{"type": "text", "text": text}, *others] if others else text


async def reply_with_corrections(
    reply: AIMessage, ask: Callable[[ModelRequest], Awaitable[AIMessage]], request: ModelRequest, on_delta: OnDelta
) -> AIMessage:
    """The reply, requested again at most `MAX_CORRECTIONS` times while it only writes a call as text."""
    for number in range(1, MAX_CORRECTIONS + 2):
        name = None if reply.tool_calls or not request.tools else _written_call(request, reply)
        if name is None:
            break
        if number > MAX_CORRECTIONS:
            on_delta(Delta("note", _GIVE_UP.format(name=name)))
            break
        on_delta(Delta("retry", _RETRY.format(name=name, number=number, most=MAX_CORRECTIONS)))
        correction = HumanMessage(_CORRECTION.format(name=name))
        request = replace(request, messages=[*request.messages, AIMessage(reply.text), correction])
        reply = add_earlier_usage(await ask(request), reply)
    return reply


def _written_call(request: ModelRequest, reply: AIMessage) -> str | None:
    """The first tool whose call is only text in the reply; None where the reply is an answer."""
    tool_names = [str(tool["function"]["name"]) for tool in request.tools]
    for call in parse_text_tool_calls(reply.text, tool_names).calls:
        if call is UNREADABLE:
            continue
        if not call.name:
            return "a tool without a name"
        if name := match_tool_name(call.name, tool_names):
            return name
    # Unreadable tags were meant as a call, but only outside of code blocks: those are shown to the user.
    outside = parse_text_tool_calls(_CODE_BLOCK.sub("", reply.text), tool_names).calls
    return "a tool without a name" if UNREADABLE in outside else None


def add_earlier_usage(reply: AIMessage, earlier: AIMessage) -> AIMessage:
    """The reply with the tokens of the replies that it replaces added to its own."""
    if not (reply.usage_metadata or earlier.usage_metadata):
        return reply
    usage = add_usage(reply.usage_metadata, earlier.usage_metadata)
    return reply.model_copy(update={"usage_metadata": usage})
