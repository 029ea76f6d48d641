"""What the local model may choose from: the actions, their JSON schema and the short text that explains them.

A small model chooses well among few; so most tools are not offered to it. Knows no runtime and no history.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CHANGE", "REPLY", "Action", "actions_for", "chosen", "explained", "schema_of"]

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
