"""The slash commands of the chat by name, and what a typed line stands for. Light: completion needs it at once."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from graph_agent.errors import UsageError

__all__ = [
    "COMMANDS",
    "CYCLED_MODES",
    "MODES",
    "NOTHING_QUEUED",
    "QUIT_WORDS",
    "Command",
    "expand_command",
    "is_command",
    "parse_command",
]

MODES: Mapping[str, str] = {
    "default": "side effects need approval",
    "acceptEdits": "edits in the workspace run unasked",
    "plan": "only reads, and presents a plan",
    "auto": "a model reviews what would be asked",
    "dontAsk": "what would need approval is denied",
}
"""What `/mode` may choose, and what each does; bypassPermissions is for the command line alone."""

CYCLED_MODES = ("default", "acceptEdits", "plan")
"""What Shift-Tab cycles through."""


class Command(NamedTuple):
    """One slash command."""

    usage: str
    does: str


COMMANDS: dict[str, Command] = {
    "help": Command("/help", "list the commands"),
    "mode": Command("/mode [NAME]", "show or set the permission mode"),
    "model": Command("/model [NAME]", "list the models, or switch to one"),
    "tools": Command("/tools [NAME]", "list the tools, or show one"),
    "threads": Command("/threads", "list all threads"),
    "resume": Command("/resume [ID]", "choose another thread, or switch to one"),
    "clear": Command("/clear", "start a new thread"),
    "calls": Command("/calls [ID]", "list the calls of this thread, or show one"),
    "inspect": Command("/inspect [PATH]", "show the graph's state, or one value of it"),
    "history": Command("/history", "list the checkpoints of this thread"),
    "diff": Command("/diff [A [B]]", "show file changes of this thread, or since A"),
    "graph": Command("/graph", "show the graph and how often each node ran"),
    "export": Command("/export FILE", "export this thread as .html, .md or .json"),
    "edit": Command("/edit [TEXT]", "write a message in your editor and send it"),
    "now": Command("/now [TEXT]", "send it, or all queued, at the next step"),
    "share": Command("/share", "add the last !COMMAND to your next message"),
    "tasks": Command("/tasks", "show or stop what runs; threads that wait"),
    "todo": Command("/todo", "show the todo list"),
    "memory": Command("/memory [undo|forget N]", "show what is remembered, or remove notes"),
    "theme": Command("/theme [NAME]", "show or set the colours of this chat"),
    "policy": Command("/policy [revoke ID]", "list rules and permissions, or revoke one"),
    "fork": Command("/fork [CHECKPOINT]", "copy this thread, up to here or a checkpoint"),
    "rewind": Command("/rewind [NUMBER]", "go back to before a message (--undo: return)"),
    "mcp": Command("/mcp", "list the MCP servers and their state"),
    "cost": Command("/cost", "show tokens and cost of turn and thread"),
    "status": Command("/status", "show model, mode, thread, cost, database"),
    "context": Command("/context", "show what fills the model's context window"),
    "doctor": Command("/doctor", "check the installation"),
    "init": Command("/init", "write or improve AGENTS.md in this folder"),
    "compact": Command("/compact", "compact the context; the history is kept"),
    "retry": Command("/retry", "ask again after an error, a limit or a stop"),
    "quit": Command("/quit", "leave; you can resume the thread later"),
}

QUIT_WORDS = ("exit", "quit")
NOTHING_QUEUED = "No message is queued. /now TEXT sends one at the next step of the running turn."

_OTHER_WORDS = {
    "plan": "mode plan",
    "new": "clear",
    "undo": "rewind",
    "sessions": "threads",
    "permissions": "policy",
    "usage": "cost",
    "tokens": "cost",
}
"""What other agents call our commands."""

_COMMAND = re.compile(r"/(?:([^\s/]+)(?:[^\S\n]+(.*))?)?")
_NOW = re.compile(r"/(now)(?:\s+(.*))?", re.DOTALL)
"""Its argument may have several lines."""


def parse_command(text: str) -> tuple[str, str] | None:
    """Name and arguments of a line that begins with a slash and a name; None for any other text."""
    line = text.rstrip()
    found = _NOW.fullmatch(line) or _COMMAND.fullmatch(line)
    return (found[1] or "", found[2] or "") if found else None


def is_command(text: str) -> bool:
    """Whether a line is a slash command, a shell line, or one of the words that leave most programs."""
    return text.startswith("!") or text.strip().lower() in QUIT_WORDS or parse_command(text) is not None


def expand_command(text: str, workspace: Path, *, trusted_once: bool = False, in_chat: bool = False) -> str:
    """The message that a prompt stands for: itself, or the text of a custom command `/NAME …`.

    Raises:
        UsageError: there is no such command, its folder is not trusted, or its text is empty.
    """
    if (command := parse_command(text)) is None:
        return text
    from graph_agent.app.chat_input import user_commands  # with all that reads a project's files

    name, arguments = command
    found = user_commands(workspace, once=trusted_once)
    message = found.message(name, arguments)
    if message == "":
        raise UsageError(f"/{name} expands to an empty message. Nothing was sent.")
    if message is not None:
        return message
    if name and Path(f"/{name}").exists():
        return text  # The line begins with a file of the root folder.
    if name in COMMANDS and not in_chat:
        raise UsageError(f"/{name} works in the chat only. `run` takes options (`run --help`) and custom commands.")
    near = difflib.get_close_matches(name, (*COMMANDS, *found.known) if in_chat else tuple(found.known), n=1)
    near = [_OTHER_WORDS[name]] if in_chat and name in _OTHER_WORDS else near
    hint = f" Did you mean /{near[0]}?" if near else " /help lists the commands." if in_chat else ""
    advice = "" if in_chat else " Begin the line with a blank to send it as a message."
    raise UsageError(f"Unknown command /{name}.{hint}{advice}")
