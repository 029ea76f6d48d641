"""What the local model may choose from: the actions, their JSON schema and the short text that explains them.

A small model chooses well among few; so most tools are not offered to it. Knows no runtime and no history.

The short prompts of the local model. Each is cut so that it fits a small context; a long one costs minutes.

How far a turn of the local model is, read from the history alone: after any restart it goes on from there.

A small model is led: it chooses one action, the harness does it, the model answers. A file is changed by reading it
and having it written anew. Asked freely for step after step, it repeats itself and overwrites what it should read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.model.local.runtime import Ask
from graph_agent.model.offline.plan import Call

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "CHANGE",
    "REPLY",
    "Action",
    "Answer",
    "Choose",
    "Done",
    "Next",
    "Rewrite",
    "Taken",
    "actions_for",
    "answering",
    "choosing",
    "chosen",
    "explained",
    "new_text",
    "next_step",
    "plainly",
    "rewriting",
    "room_of",
    "schema_of",
    "taken_since",
    "to_change",
]

CHANGE = "change_file"
"""Not a tool: the file is read, then written anew."""
REPLY = "reply"
"""Not a tool: an answer in words."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the model may do."""

    name: str
    arguments: tuple[str, ...]
    """All of them texts, all required."""
    meaning: str
    needs: tuple[str, ...]
    """Tools that have to be on offer."""


_ACTIONS: tuple[Action, ...] = (
    Action("ls", ("path",), 'list the files of a folder; "." is the whole project', ("ls",)),
    Action("glob", ("pattern",), "find files by name, such as **/*.py", ("glob",)),
    Action("grep", ("pattern",), "find in which files a word stands", ("grep",)),
    Action("read_file", ("file_path",), "look into a file, to show or explain it", ("read_file",)),
    Action("write_file", ("file_path", "content"), "make a new file with this content", ("write_file",)),
    Action(CHANGE, ("file_path",), "change, fix or extend a file that exists", ("read_file", "write_file")),
    Action("bash", ("command",), "run a shell command", ("bash",)),
    Action(REPLY, ("text",), "answer in words, where no file and no command is needed", ()),
)
_TASK = (
    "You are a coding agent in a folder of files. Choose the one action that comes first for what the user asks, "
    "and answer with its JSON object only:"
)
_EXAMPLES: tuple[tuple[str, dict[str, str]], ...] = (
    ("what does src/main.py do?", {"tool": "read_file", "file_path": "src/main.py"}),
    ("where is parse_args used", {"tool": "grep", "pattern": "parse_args"}),
    ("fix the typo in notes.md", {"tool": CHANGE, "file_path": "notes.md"}),
    ("add a class Tree to forest.py", {"tool": CHANGE, "file_path": "forest.py"}),
    ("show the git log", {"tool": "bash", "command": "git log --oneline"}),
    ("hello", {"tool": REPLY, "text": "Hello! What shall I do?"}),
)


def actions_for(tools: frozenset[str]) -> tuple[Action, ...]:
    """Those that can be done with the tools on offer."""
    return tuple(action for action in _ACTIONS if tools.issuperset(action.needs))


def schema_of(actions: Sequence[Action]) -> dict[str, Any]:
    """One object for each action; what is decoded under it always names one, with all of its arguments."""
    return {"anyOf": [_object(action) for action in actions]}


def explained(actions: Sequence[Action]) -> str:
    """The system message: what there is to choose from, with examples."""
    names = {action.name for action in actions}
    shapes = [f"{_shape(action)} {action.meaning}" for action in actions]
    examples = [f"{said} -> {json.dumps(done)}" for said, done in _EXAMPLES if done["tool"] in names]
    return "\n".join(
        [
            _TASK,
            *shapes,
            "Examples:",
            *examples,
        ]
    )


def chosen(text: str, actions: Sequence[Action]) -> tuple[str, dict[str, str]] | None:
    """The action that the text names, with its arguments; None where it names none, or not wholly."""
    try:
        told = json.loads(text)
    except ValueError:
        return None
    if not isinstance(told, Mapping):
        return None
    for action in actions:
        arguments = {name: told.get(name) for name in action.arguments}
        if told.get("tool") == action.name and all(isinstance(value, str) for value in arguments.values()):
            return action.name, {name: str(value) for name, value in arguments.items()}
    return None


def _object(action: Action) -> dict[str, Any]:
    arguments = {name: {"type": "string"} for name in action.arguments}
    return {
        "type": "object",
        "properties": {"tool": {"const": action.name}, **arguments},
        "required": ["tool", *action.arguments],
        "additionalProperties": False,
    }


def _shape(action: Action) -> str:
    arguments = "".join(f', "{name}": "..."' for name in action.arguments)
    return f'{{"tool": "{action.name}"{arguments}}}'


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
