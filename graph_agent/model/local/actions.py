"""The steps of a turn with the local model: the actions it may choose from, the prompts, and which step comes next.

A small model is led: it chooses one action among few, the program runs it, the model answers. A file is changed by
reading it and having the model write it anew. Asked freely for step after step it repeats itself and overwrites
what it should only read. The step is found from the history alone, so a restarted turn continues where it was.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from graph_agent.model.local.runtime import CompletionRequest
from graph_agent.model.offline.plan import PlannedCall

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "CHANGE",
    "REPLY",
    "Action",
    "ActionRequest",
    "AnswerRequest",
    "FinalText",
    "FinishedCall",
    "RewriteRequest",
    "Step",
    "actions_for",
    "answer_prompt",
    "change_notice",
    "choice_prompt",
    "extract_file",
    "finished_calls",
    "instructions",
    "next_step",
    "parse_action",
    "plain_prompt",
    "prompt_room",
    "rewrite_prompt",
    "schema_of",
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
    description: str
    tools: tuple[str, ...]
    """Tools it needs."""


_ACTIONS: tuple[Action, ...] = (
    Action("ls", ("path",), 'list the files of a folder; "." is the whole project', ("ls",)),
    Action("glob", ("pattern",), "find files by name, such as **/*.py", ("glob",)),
    Action("grep", ("pattern",), "find the files that contain a word", ("grep",)),
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
    """The actions that are possible with the tools on offer."""
    return tuple(action for action in _ACTIONS if tools.issuperset(action.tools))


def schema_of(actions: Sequence[Action]) -> dict[str, Any]:
    """The JSON schema with one object per action; output decoded under it is always one complete action."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "tool": {"const": action.name},
                    **{name: {"type": "string"} for name in action.arguments},
                },
                "required": ["tool", *action.arguments],
                "additionalProperties": False,
            }
            for action in actions
        ]
    }


def instructions(actions: Sequence[Action]) -> str:
    """The system message: the actions, with examples."""
    names = {action.name for action in actions}
    shapes = [
        f"{json.dumps({'tool': action.name, **dict.fromkeys(action.arguments, '...')})} {action.description}"
        for action in actions
    ]
    examples = [f"{request} -> {json.dumps(done)}" for request, done in _EXAMPLES if done["tool"] in names]
    return "\n".join([_TASK, *shapes, "Examples:", *examples])


def parse_action(text: str, actions: Sequence[Action]) -> tuple[str, dict[str, str]] | None:
    """The chosen action with its arguments; None where the text holds no complete one."""
    try:
        choice = json.loads(text)
    except ValueError:
        return None
    if not isinstance(choice, Mapping):
        return None
    for action in actions:
        arguments = {name: value for name in action.arguments if isinstance(value := choice.get(name), str)}
        if choice.get("tool") == action.name and len(arguments) == len(action.arguments):
            return action.name, arguments
    return None


_MAX_CHOICES = 3
_NOT_RUN = "Not run"
"""What the result of a call begins with that was rejected, cancelled or stopped."""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call of this turn and its result."""

    tool: str
    arguments: dict[str, Any]
    message: str
    """The text of the message that made it."""
    result: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """Ask the model to choose an action."""


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """Ask the model for the new text of a file."""

    path: str
    listing: str


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Ask the model to answer in words, from the result of the last call."""

    last: FinishedCall


@dataclass(frozen=True, slots=True)
class FinalText:
    """End the turn with this text, without asking the model."""

    text: str


Step = ActionRequest | RewriteRequest | AnswerRequest | PlannedCall | FinalText


def finished_calls(messages: "Sequence[BaseMessage]") -> list[FinishedCall]:
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
            is_error = message.status == "error"
            finished.append(FinishedCall(call["name"], dict(call["args"]), text, message.text, is_error))
    return finished


def change_notice(path: str) -> str:
    """The text of the message that reads a file in order to change it; it marks the purpose in the history."""
    return f"To change {path}, I read it first."


def next_step(finished: Sequence[FinishedCall]) -> Step:
    """What comes after the calls of this turn."""
    if not finished:
        return ActionRequest()
    last = finished[-1]
    if last.is_error:
        return _step_after_failure(finished)
    if last.tool == "write_file":
        return FinalText(f"Done. {last.result}")
    if last.tool != "read_file":
        return AnswerRequest(last)
    path = str(last.arguments.get("file_path", ""))
    if last.message.startswith(change_notice(path)):
        return RewriteRequest(path, last.result)
    # A file that had to be read before it could be overwritten is now written.
    writes = [call for call in finished if call.tool == "write_file" and call.arguments.get("file_path") == path]
    return PlannedCall("write_file", writes[-1].arguments) if writes else AnswerRequest(last)


def _step_after_failure(finished: Sequence[FinishedCall]) -> Step:
    *before, last = finished
    failed = FinalText(f"Not done. {last.result}")
    if last.result.startswith(_NOT_RUN):
        return FinalText(last.result)
    if last.tool == "bash":
        return AnswerRequest(last)
    if last.tool == "write_file":
        must_read = "read it" in last.result and not any(call.tool == "read_file" for call in finished)
        return PlannedCall("read_file", {"file_path": last.arguments.get("file_path")}) if must_read else failed
    is_repeated = any((call.tool, call.arguments) == (last.tool, last.arguments) for call in before)
    return failed if is_repeated or len(finished) >= _MAX_CHOICES else ActionRequest()


_CHARACTERS_PER_TOKEN = 3
_CHOICE_TOKENS = 800
_ANSWER_TOKENS = 500
_OVERHEAD_TOKENS = 150
_MAX_REQUEST = 4_000
_EARLIER_MESSAGES = 4
_EARLIER_CHARACTERS = 300

_ANSWER = "You are a coding agent. Answer the user briefly and plainly, based on the result below."
_REWRITE = (
    "You edit files. Answer with the whole new text of the file between two lines of three backquotes, and nothing "
    "else. Change only what is asked for and keep all other lines as they are."
)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


def choice_prompt(
    prompt: str, earlier: "Sequence[BaseMessage]", failed: Sequence[FinishedCall], actions: Sequence[Action]
) -> CompletionRequest:
    """Which action comes next; the end of the conversation and the calls that failed are included in short."""
    prompt = _clip(prompt, _MAX_REQUEST)
    for call in failed:
        result = _clip(call.result, _EARLIER_CHARACTERS)
        prompt += f"\n\n{call.tool} {call.arguments} failed: {result} Choose another action."
    roles = {"human": "user", "ai": "assistant"}
    spoken = [one for one in earlier if one.type in roles and one.text.strip()][-_EARLIER_MESSAGES:]
    begin = next((position for position, message in enumerate(spoken) if message.type == "human"), 0)
    recent = [_message(roles[one.type], _clip(one.text, _EARLIER_CHARACTERS)) for one in spoken[begin:]]
    messages = [_message("system", instructions(actions)), *recent, _message("user", prompt)]
    return CompletionRequest(messages, _CHOICE_TOKENS, schema_of(actions))


def answer_prompt(prompt: str, last: FinishedCall, context: int) -> CompletionRequest:
    """An answer in words, from the result of the last call."""
    result = _clip(last.result, max(500, prompt_room(context, _ANSWER_TOKENS) - len(prompt)))
    text = f"{_clip(prompt, _MAX_REQUEST)}\n\nResult of {last.tool} {last.arguments}:\n{result}"
    return CompletionRequest([_message("system", _ANSWER), _message("user", text)], _ANSWER_TOKENS)


def rewrite_prompt(prompt: str, path: str, content: str, context: int) -> CompletionRequest | None:
    """The new text of a file; None where reading and writing it does not fit into the context window."""
    text = f"File {path}:\n```\n{content}```\n\n{prompt}"
    tokens = len(content) // _CHARACTERS_PER_TOKEN + 200
    if len(text) > prompt_room(context, tokens):
        return None
    return CompletionRequest([_message("system", _REWRITE), _message("user", text)], tokens)


def plain_prompt(messages: "Sequence[BaseMessage]", context: int) -> CompletionRequest:
    """A request without tools, such as a summary: instructions and newest message, as far as they fit."""
    room = prompt_room(context, _ANSWER_TOKENS)
    system = [_message("system", _clip(one.text, room // 2)) for one in messages[:1] if one.type == "system"]
    prompt = _clip(messages[-1].text, room - sum(len(one["content"]) for one in system))
    return CompletionRequest([*system, _message("user", prompt)], _ANSWER_TOKENS)


def extract_file(reply: str) -> str | None:
    """The file in the reply; None where it is not clearly there."""
    found = _FENCED.search(reply)
    if found is None:
        return None
    return found[1] if not found[1] or found[1].endswith("\n") else found[1] + "\n"


def prompt_room(context: int, answer_tokens: int) -> int:
    """Characters that a prompt may have besides its answer."""
    return max(0, (context - answer_tokens - _OVERHEAD_TOKENS) * _CHARACTERS_PER_TOKEN)


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [... cut]"
