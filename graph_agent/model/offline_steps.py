"""How far the commands of a message are done, by the history alone, and what comes next. Keeps nothing."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.calls import DECIDED
from graph_agent.model.offline_plan import Call, Dialogue, Report, Result, dialogue
from graph_agent.model.offline_words import report, stopped_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from graph_agent.model.offline_commands import Command

__all__ = ["Ended", "Finished", "finished_since", "newest_prompt", "step_of"]

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
