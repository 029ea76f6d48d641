"""The embedded default: no language model, but a deterministic reader of a small command language.

It stands behind the chat-model port and makes ordinary tool calls, one a message. It keeps nothing between
requests: the newest user message says what is to be done, the calls since then say how far it is. Loads no model
library.
"""

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.config.choice import CONNECT_BRIEFLY, CONNECT_FIRST, OFFLINE_LABEL
from graph_agent.errors import UsageError
from graph_agent.model.offline_grammar import NotUnderstood, is_chinese, parse
from graph_agent.model.offline_plan import Call, Dialogue, Report, Result, dialogue
from graph_agent.model.offline_words import not_understood, notice, report, stopped_before
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.messages.ai import UsageMetadata

__all__ = ["OfflineModel"]

_NOTHING_USED: "UsageMetadata" = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
_Done = list[tuple[str, Result]]


class OfflineModel:
    """A `ChatModel` without a model."""

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return OFFLINE_LABEL

    @property
    def name(self) -> str:
        """See `Models.name`."""
        return ""

    async def names(self) -> tuple[str, ...]:
        """See `Models.names`: none can be had without an endpoint."""
        return ()

    async def switch(self, name: str) -> None:
        """See `Models.switch`."""
        raise UsageError(f"{name!r} cannot be asked: there is no endpoint. {CONNECT_FIRST}")

    async def close(self) -> None:
        """Nothing was opened."""

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`; the same history and tools always give the same reply, but for the call id."""
        begin = _newest_prompt(request.messages)
        prompt = request.messages[begin].text if begin >= 0 else ""
        tools = frozenset(str(tool["function"]["name"]) for tool in request.tools)
        answer = _next(prompt, tools, _results(request.messages[begin + 1 :]))
        if isinstance(answer, Call):
            return _asking(answer, on_delta)
        if not _was_told(request.messages):
            answer = f"{notice(OFFLINE_LABEL, chinese=is_chinese(prompt))}\n\n{answer}"
        for line in answer.splitlines(keepends=True):
            on_delta(Delta("text", line))
        return AIMessage(answer, usage_metadata=_NOTHING_USED, response_metadata=_metadata("stop"))


def _next(prompt: str, tools: frozenset[str], done: _Done) -> Call | str:
    chinese = is_chinese(prompt)
    commands = parse(prompt)
    if isinstance(commands, NotUnderstood):
        return not_understood(commands, CONNECT_BRIEFLY, chinese=chinese)
    told: list[str] = []
    for position, command in enumerate(commands, start=1):
        ended = _replay(dialogue(command, tools), done)
        if isinstance(ended, Call):
            return ended
        told.append(report(ended, chinese=chinese))
        if ended.kind != "done" and position < len(commands):
            told.append(stopped_before(len(commands) - position, chinese=chinese))
            break
    return "\n\n".join(told)


def _replay(steps: Dialogue, done: _Done) -> Call | Report:
    """Lead a dialogue through the results at hand, using them up; its next call, or how it ended."""
    try:
        call = next(steps)
        while done:
            tool, result = done.pop(0)
            if tool == call.tool:
                call = steps.send(result)
    except StopIteration as ended:
        final: Report = ended.value
        return final
    return call


def _results(messages: "Sequence[BaseMessage]") -> _Done:
    asked = {
        call["id"]: call["name"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    return [
        (asked[message.tool_call_id], Result(message.text, message.status == "error"))
        for message in messages
        if isinstance(message, ToolMessage) and message.tool_call_id in asked
    ]


def _newest_prompt(messages: "Sequence[BaseMessage]") -> int:
    return max((position for position, message in enumerate(messages) if message.type == "human"), default=-1)


def _was_told(messages: "Sequence[BaseMessage]") -> bool:
    return any(message.type == "ai" and OFFLINE_LABEL in message.text for message in messages)


def _asking(call: Call, on_delta: OnDelta) -> AIMessage:
    on_delta(Delta("tool_call", json.dumps(call.arguments, ensure_ascii=False), tool_name=call.tool))
    wanted = {"name": call.tool, "args": dict(call.arguments), "id": f"call_{uuid4().hex}"}
    return AIMessage(
        "", tool_calls=[wanted], usage_metadata=_NOTHING_USED, response_metadata=_metadata("tool_calls")
    )


def _metadata(finish_reason: str) -> dict[str, Any]:
    return {"model_name": OFFLINE_LABEL, "finish_reason": finish_reason}
