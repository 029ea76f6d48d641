"""How far a turn of the local model is, read from the history alone: after any restart it goes on from there.

A small model is led: it chooses one action, the harness does it, the model answers. A file is changed by reading it
and having it written anew. Asked freely for step after step, it repeats itself and overwrites what it should read.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.model.offline_plan import Call

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Answer", "Choose", "Done", "Next", "Rewrite", "Taken", "next_step", "taken_since", "to_change"]

_MOST_CHOICES = 3
_REFUSED = "Not run"
"""What the result of a call begins with that was refused, cancelled or stopped."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A call of this turn and what came of it."""

    tool: str
    arguments: dict[str, Any]
    said: str
    """The text of the message that made it."""
    result: str
    is_error: bool

    @property
    def key(self) -> str:
        """The same for the same call."""
        return json.dumps([self.tool, self.arguments], sort_keys=True)


@dataclass(frozen=True, slots=True)
class Choose:
    """The model is to choose an action."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The model is to write this file anew."""

    path: str
    listing: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The model is to answer in words, with this result at hand."""

    last: Taken


@dataclass(frozen=True, slots=True)
class Done:
    """The turn ends with these words."""

    text: str


Next = Choose | Rewrite | Answer | Call | Done


def to_change(path: str) -> str:
    """What the message says that reads a file in order to change it; the history remembers the purpose by it."""
    return f"To change {path}, I read it first."


def next_step(taken: Sequence[Taken]) -> Next:
    """What comes after the calls of this turn."""
    if not taken:
        return Choose()
    last = taken[-1]
    if last.is_error:
        return _after_failure(taken)
    if last.tool == "write_file":
        return Done(f"Done. {last.result}")
    if last.tool == "read_file":
        return _after_reading(taken)
    return Answer(last)


def taken_since(messages: "Sequence[BaseMessage]") -> list[Taken]:
    """The calls of these messages that have a result, in order."""
    asked = {
        call["id"]: (call, message.text)
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    taken = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in asked:
            call, said = asked[message.tool_call_id]
            taken.append(Taken(call["name"], dict(call["args"]), said, message.text, message.status == "error"))
    return taken


def _after_reading(taken: Sequence[Taken]) -> Next:
    last = taken[-1]
    path = str(last.arguments.get("file_path", ""))
    if last.said.startswith(to_change(path)):
        return Rewrite(path, last.result)
    unread = [one for one in taken[:-1] if one.tool == "write_file" and one.arguments.get("file_path") == path]
    return Call("write_file", unread[-1].arguments) if unread else Answer(last)


def _after_failure(taken: Sequence[Taken]) -> Next:
    last = taken[-1]
    if last.result.startswith(_REFUSED):
        return Done(last.result)
    if last.tool == "bash":
        return Answer(last)
    if last.tool == "write_file":
        is_first = not any(one.tool == "read_file" for one in taken)
        path = last.arguments.get("file_path")
        return Call("read_file", {"file_path": path}) if is_first and "read it" in last.result else _failed(last)
    repeats = last.key in {one.key for one in taken[:-1]}
    return _failed(last) if repeats or len(taken) >= _MOST_CHOICES else Choose()


def _failed(last: Taken) -> Done:
    return Done(f"Not done. {last.result}")
