"""The embedded default without a language model: runs the commands of a small language as ordinary tool calls.

It makes one call per message and keeps no state: the newest user message says what to do, the calls since then say
how much of it is done. It loads no model library.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.calls import DO_NOT_REPEAT, FULL_RESULTS, USER_DECISION
from graph_agent.config.model_choice import CONNECT_HELP, CONNECT_HELP_CHINESE, CONNECT_HELP_SHORT, OFFLINE_LABEL
from graph_agent.model.offline.parser import NotUnderstood, is_chinese, parse
from graph_agent.model.offline.plan import CallResult, Outcome, PlannedCall, plan_command
from graph_agent.model.offline.replies import format_help, format_notice, format_outcome, format_skipped
from graph_agent.model.single_model import SingleModel, reply_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta
from graph_agent.ports.model import UNFULFILLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.messages.ai import UsageMetadata

    from graph_agent.model.offline.parser import Command


__all__ = ["Answer", "OfflineModel", "call_message", "finished_calls", "last_prompt", "next_step", "text_message"]

_MAX_SUBJECT = 80
_NO_USAGE: "UsageMetadata" = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer once a message is worked through."""

    text: str
    unmet: str = ""
    """Why not all of it was done, in a few words; empty where all was, or a person decided against it."""


class OfflineModel(SingleModel):
    """A `ChatModel` without a language model."""

    def __init__(self, local_problem: str = "") -> None:
        super().__init__(f"there is no endpoint. {CONNECT_HELP}")
        self._local_problem = local_problem
        """Why the configured local model does not answer instead."""

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return OFFLINE_LABEL

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`; the same history and tools always give the same reply, except for the call id."""
        begin = last_prompt(request.messages)
        prompt = request.messages[begin].text if begin >= 0 else ""
        chinese, commands = is_chinese(prompt), parse(prompt)
        if isinstance(commands, NotUnderstood):
            connect = CONNECT_HELP_CHINESE if chinese else CONNECT_HELP_SHORT
            is_known = not commands.asks_for_help and any(
                message.type == "ai" and message.response_metadata.get("model_name") == OFFLINE_LABEL
                for message in request.messages
            )
            text = format_help(commands, connect, chinese=chinese, is_known=is_known)
            unmet = "" if commands.asks_for_help else "not understood"
            step: PlannedCall | Answer = Answer(text, unmet)
        else:
            done = finished_calls(request.messages[begin + 1 :])
            step = next_step(commands, request.tool_names, done, chinese=chinese)
        if isinstance(step, PlannedCall):
            reply = call_message(step, self.label, on_delta)
        else:
            notice = ""
            if not any(message.type == "ai" and OFFLINE_LABEL in message.text for message in request.messages):
                # The first answer of a thread says that no model answers.
                problem = self._local_problem and f"\nThe local model is not available: {self._local_problem}."
                notice = f"{format_notice(OFFLINE_LABEL, chinese=chinese)}{problem}\n\n"
            reply = text_message(f"{notice}{step.text}", self.label, on_delta, step.unmet)
        return reply_with_notices(reply, request, on_delta, chinese=chinese)


def next_step(
    commands: "Sequence[Command]", tools: frozenset[str], done: list[CallResult], *, chinese: bool
) -> PlannedCall | Answer:
    """The next call of the commands; once there is none, the answer. Uses `done` up."""
    lines: list[str] = []
    for position, command in enumerate(commands, start=1):
        plan = plan_command(command, tools)
        try:
            call = next(plan)
            while done:
                result = done.pop(0)
                if result.tool == call.tool:
                    call = plan.send(result)
        except StopIteration as ended:
            outcome: Outcome = ended.value
        else:
            return call
        lines.append(format_outcome(outcome, chinese=chinese))
        if outcome.kind != "done":
            if position < len(commands):
                lines.append(format_skipped(len(commands) - position, chinese=chinese))
            unmet = "" if outcome.is_decided else f"not done: {outcome.subject[:_MAX_SUBJECT]}"
            return Answer("\n\n".join(lines), unmet)
    return Answer("\n\n".join(lines))


def finished_calls(messages: "Sequence[BaseMessage]") -> list[CallResult]:
    """The calls of these messages that have a result, in order."""
    made = {
        call["id"]: (call, message.text)
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    finished = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in made:
            call, text = made[message.tool_call_id]
            is_error, is_decided = message.status == "error", bool(message.additional_kwargs.get(USER_DECISION))
            own = message.text.replace(f" {DO_NOT_REPEAT}", "")  # Here the reader is a person.
            finished.append(CallResult(own, is_error, is_decided, call["name"], dict(call["args"]), text))
    return finished


def last_prompt(messages: "Sequence[BaseMessage]") -> int:
    """The position of the newest user message; -1 where there is none."""
    return max((position for position, message in enumerate(messages) if message.type == "human"), default=-1)


def call_message(call: PlannedCall, label: str, on_delta: OnDelta, text: str = "") -> AIMessage:
    """A message with one tool call, at no cost."""
    on_delta(Delta("tool_call", json.dumps(call.arguments, ensure_ascii=False), tool_name=call.tool))
    tool_call = {"name": call.tool, "args": dict(call.arguments), "id": f"call_{uuid4().hex}"}
    metadata = {"model_name": label, "finish_reason": "tool_calls", FULL_RESULTS: True}
    return AIMessage(text, tool_calls=[tool_call], usage_metadata=_NO_USAGE, response_metadata=metadata)


def text_message(text: str, label: str, on_delta: OnDelta, unmet: str = "") -> AIMessage:
    """A message with text, shown line by line, at no cost; `unmet`: why it reports something as not done."""
    for line in text.splitlines(keepends=True):
        on_delta(Delta("text", line))
    metadata = {"model_name": label, "finish_reason": "stop", **({UNFULFILLED: unmet} if unmet else {})}
    return AIMessage(text, usage_metadata=_NO_USAGE, response_metadata=metadata)
