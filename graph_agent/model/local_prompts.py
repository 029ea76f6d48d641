"""The short prompts of the local model. Each is cut so that it fits a small context; a long one costs minutes."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph_agent.model.local_actions import Action, explained, schema_of
from graph_agent.model.local_runtime import Ask
from graph_agent.model.local_turn import Taken

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["answering", "choosing", "new_text", "plainly", "rewriting", "room_of"]

_CHARACTERS_A_TOKEN = 3
_CHOICE_TOKENS = 800
_ANSWER_TOKENS = 500
_OVERHEAD_TOKENS = 150
_EARLIER = 2
"""Exchanges before this turn that are told again, each in short."""
_EARLIER_CHARACTERS = 300

_ANSWER = "You are a coding agent. Answer the user shortly and plainly, by what the result below says."
_REWRITE = (
    "You edit files. Answer with the whole new text of the file between two lines of three backquotes, and nothing "
    "else. Change only what is asked for and keep all other lines as they are."
)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


def choosing(wish: str, earlier: "Sequence[BaseMessage]", taken: Sequence[Taken], actions: Sequence[Action]) -> Ask:
    """Which action comes next; what went wrong before is told."""
    wish = _clipped(wish, 4_000)
    for one in taken:
        wish += f"\n\n{one.tool} {one.arguments} failed: {_clipped(one.result, 300)} Choose another action."
    told = [_message("system", explained(actions)), *_earlier(earlier), _message("user", wish)]
    return Ask(told, _CHOICE_TOKENS, schema_of(actions))


def answering(wish: str, last: Taken, context: int) -> Ask:
    """An answer in words, by the result of the last call."""
    room = room_of(context, _ANSWER_TOKENS)
    shown = _clipped(last.result, max(500, room - len(wish)))
    told = f"{_clipped(wish, 4_000)}\n\nResult of {last.tool} {last.arguments}:\n{shown}"
    return Ask([_message("system", _ANSWER), _message("user", told)], _ANSWER_TOKENS)


def rewriting(wish: str, path: str, text: str, context: int) -> Ask | None:
    """A file written anew; None where it is too long to be read and written within the context."""
    told = f"File {path}:\n```\n{text}```\n\n{wish}"
    tokens = len(text) // _CHARACTERS_A_TOKEN + 200
    if len(told) > room_of(context, tokens):
        return None
    return Ask([_message("system", _REWRITE), _message("user", told)], tokens)


def plainly(messages: "Sequence[BaseMessage]", context: int) -> Ask:
    """What is asked without any tool, such as a summary: instructions and newest message, as far as they fit."""
    room = room_of(context, _ANSWER_TOKENS)
    system = [_message("system", _clipped(each.text, room // 2)) for each in messages[:1] if each.type == "system"]
    wish = _clipped(messages[-1].text, room - sum(len(each["content"]) for each in system))
    return Ask([*system, _message("user", wish)], _ANSWER_TOKENS)


def new_text(reply: str) -> str | None:
    """The file in the reply; None where it is not clearly there."""
    found = _FENCED.search(reply)
    if found is None:
        return None
    return found[1] if not found[1] or found[1].endswith("\n") else found[1] + "\n"


def room_of(context: int, answer_tokens: int) -> int:
    """Characters that a prompt may have beside its answer."""
    return max(0, (context - answer_tokens - _OVERHEAD_TOKENS) * _CHARACTERS_A_TOKEN)


def _earlier(messages: "Sequence[BaseMessage]") -> list[dict[str, str]]:
    """The end of the conversation so far, in words only."""
    roles = {"human": "user", "ai": "assistant"}
    spoken = [message for message in messages if message.type in roles and message.text.strip()]
    begin = next((at for at, message in enumerate(spoken[-2 * _EARLIER :]) if message.type == "human"), 0)
    kept = spoken[-2 * _EARLIER :][begin:]
    return [_message(roles[message.type], _clipped(message.text, _EARLIER_CHARACTERS)) for message in kept]


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [... cut]"
