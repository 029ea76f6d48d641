"""The embedded default: no language model, but a deterministic reader of a small command language.

It stands behind the chat-model port and makes ordinary tool calls, one a message. It keeps nothing between
requests: the newest user message says what is to be done, the calls since then say how far it is. Loads no model
library.

How far the commands of a message are done, by the history alone, and what comes next. Keeps nothing.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.calls import DECIDED, WANTS_WHOLE
from graph_agent.config.model_choice import CONNECT_HELP, CONNECT_HELP_CHINESE, CONNECT_HELP_SHORT, OFFLINE_LABEL
from graph_agent.model.notices import reply_with_notices
from graph_agent.model.offline.grammar import NotUnderstood, is_chinese, parse
from graph_agent.model.offline.plan import Call, Dialogue, Report, Result, dialogue
from graph_agent.model.offline.replies import not_understood, notice, report, stopped_before
from graph_agent.model.single_model import SingleModel
from graph_agent.ports import Delta, ModelRequest, OnDelta
from graph_agent.ports.model import UNMET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.messages.ai import UsageMetadata

    from graph_agent.model.offline.commands import Command


__all__ = ["Ended", "Finished", "OfflineModel", "calling", "finished_since", "newest_prompt", "speaking", "step_of"]

Finished = list[tuple[str, Result]]
"""Tool and result of the calls of a turn, in order."""

_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a whole message."""

    text: str
    unmet: str = ""
    """Why not all of it was done, in a few words; empty where all was, or a person decided otherwise."""


def step_of(commands: "Sequence[Command]", tools: frozenset[str], done: Finished, *, chinese: bool) -> Call | Ended:
    """The next call of the commands; once there is none, what came of them in words. Uses `done` up."""
    told: list[str] = []
    unmet = ""
    for position, command in enumerate(commands, start=1):
        ended = _replay(dialogue(command, tools), done)
        if isinstance(ended, Call):
            return ended
        told.append(report(ended, chinese=chinese))
        if ended.kind != "done":
            unmet = "" if ended.is_decided else f"not done: {ended.subject[:_MOST_SHOWN]}"
            if position < len(commands):
                told.append(stopped_before(len(commands) - position, chinese=chinese))
            break
    return Ended("\n\n".join(told), unmet)


def finished_since(messages: "Sequence[BaseMessage]") -> Finished:
    """The calls of these messages that have a result."""
    asked = {
        call["id"]: call["name"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    return [
        (
            asked[message.tool_call_id],
            Result(message.text, message.status == "error", bool(message.additional_kwargs.get(DECIDED))),
        )
        for message in messages
        if isinstance(message, ToolMessage) and message.tool_call_id in asked
    ]


def newest_prompt(messages: "Sequence[BaseMessage]") -> int:
    """Where the newest message of the user stands; -1 where there is none."""
    return max((position for position, message in enumerate(messages) if message.type == "human"), default=-1)


def _replay(steps: Dialogue, done: Finished) -> Call | Report:
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


_NOTHING_USED: "UsageMetadata" = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


class OfflineModel(SingleModel):
    """A `ChatModel` without a model."""

    def __init__(self, obstacle: str = "") -> None:
        super().__init__(f"there is no endpoint. {CONNECT_HELP}")
        self._obstacle = obstacle
        """Why the local model that is configured does not answer instead."""

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return OFFLINE_LABEL

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`; the same history and tools always give the same reply, but for the call id."""
        begin = newest_prompt(request.messages)
        prompt = request.messages[begin].text if begin >= 0 else ""
        reply = self._answered(request, begin, prompt, on_delta)
        return reply_with_notices(reply, request, on_delta, chinese=is_chinese(prompt))

    def _answered(self, request: ModelRequest, begin: int, prompt: str, on_delta: OnDelta) -> AIMessage:
        chinese, commands = is_chinese(prompt), parse(prompt)
        if isinstance(commands, NotUnderstood):
            connect = CONNECT_HELP_CHINESE if chinese else CONNECT_HELP_SHORT
            answer: Call | Ended = Ended(not_understood(commands, connect, chinese=chinese))
        else:
            done = finished_since(request.messages[begin + 1 :])
            answer = step_of(commands, request.tool_names, done, chinese=chinese)
        if isinstance(answer, Call):
            return calling(answer, self.label, on_delta)
        first = "" if _was_told(request.messages) else f"{self._notice(chinese=chinese)}\n\n"
        return speaking(f"{first}{answer.text}", self.label, on_delta, answer.unmet)

    def _notice(self, *, chinese: bool) -> str:
        told = notice(OFFLINE_LABEL, chinese=chinese)
        return f"{told}\nThe local model does not answer: {self._obstacle}." if self._obstacle else told


def calling(call: Call, label: str, on_delta: OnDelta, text: str = "") -> AIMessage:
    """A message that asks for one call, at no cost."""
    on_delta(Delta("tool_call", json.dumps(call.arguments, ensure_ascii=False), tool_name=call.tool))
    wanted = {"name": call.tool, "args": dict(call.arguments), "id": f"call_{uuid4().hex}"}
    metadata = {"model_name": label, "finish_reason": "tool_calls", WANTS_WHOLE: True}
    return AIMessage(text, tool_calls=[wanted], usage_metadata=_NOTHING_USED, response_metadata=metadata)


def speaking(text: str, label: str, on_delta: OnDelta, unmet: str = "") -> AIMessage:
    """A message in words, shown line by line, at no cost; `unmet`: why it tells of what was not done."""
    for line in text.splitlines(keepends=True):
        on_delta(Delta("text", line))
    metadata = {"model_name": label, "finish_reason": "stop", **({UNMET: unmet} if unmet else {})}
    return AIMessage(text, usage_metadata=_NOTHING_USED, response_metadata=metadata)


def _was_told(messages: "Sequence[BaseMessage]") -> bool:
    return any(message.type == "ai" and OFFLINE_LABEL in message.text for message in messages)
