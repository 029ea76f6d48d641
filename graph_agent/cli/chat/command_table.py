"""What a person typed as the message it is: a slash command of the user's own stands for one. Sends nothing.

The names of the slash commands and of the modes they take. Values only: completion needs them at once.
"""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from graph_agent.errors import UsageError

__all__ = ["COMMANDS", "MODES", "Command", "expand_command", "is_path", "nearest", "parse_command"]

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk")
"""What `/mode` may choose; bypassPermissions is for the command line alone."""


class Command(NamedTuple):
    """One slash command."""

    usage: str
    does: str


COMMANDS: dict[str, Command] = {
    "help": Command("/help", "show this"),
    "mode": Command("/mode [NAME]", f"show the permission mode, or take another: {', '.join(MODES)}"),
    "model": Command("/model [NAME]", "show which model answers and which others there are, or take another"),
    "tools": Command("/tools [NAME]", "list the tools, or show one as the model reads it"),
    "threads": Command("/threads", "list every thread"),
    "resume": Command("/resume ID", "leave this thread and go on with another"),
    "clear": Command("/clear", "leave this thread and begin a new one"),
    "calls": Command("/calls [ID]", "show every call of this thread with its status, or one of them whole"),
    "inspect": Command("/inspect [PATH]", "show the state of the graph, or one piece of it"),
    "history": Command("/history", "list the checkpoints of this thread"),
    "diff": Command("/diff [A [B]]", "show what this thread changed on disk; or from checkpoint A to B, or to now"),
    "graph": Command("/graph", "draw the graph, where this thread stands in it and how it came there"),
    "export": Command("/export FILE", "write this thread to FILE: as a page (.html, .md) or whole (.json)"),
    "edit": Command("/edit [TEXT]", "write a message in your editor ($VISUAL, $EDITOR) and send it"),
    "share": Command("/share", "give the model what your last !COMMAND wrote, with your next message"),
    "todo": Command("/todo", "show the plan of the work"),
    "memory": Command("/memory", "show what is remembered for every thread"),
    "policy": Command("/policy [revoke ID]", "show the rules and what was allowed always, or take a grant back"),
    "fork": Command("/fork [CHECKPOINT]", "go on in a new thread made from here, or from a checkpoint"),
    "rewind": Command("/rewind CHECKPOINT", "put conversation and files back to there; --undo takes that back"),
    "mcp": Command("/mcp", "list the servers of tools and how each is doing"),
    "cost": Command("/cost", "show what this turn and this thread used, in tokens and money"),
    "doctor": Command("/doctor", "check what works on this machine and what does not"),
    "compact": Command("/compact", "make what the model is told of this conversation shorter; nothing is lost"),
    "retry": Command("/retry", "ask the model again after an error, a limit or a stop"),
    "quit": Command("/quit", "leave; the thread can be resumed"),
}

_COMMAND = re.compile(r"/(?:([^\s/]+)(?:[^\S\n]+(.*))?)?")


def parse_command(text: str) -> tuple[str, str] | None:
    """Name and arguments of a line whose first word is a name behind a slash; None for any other text."""
    found = _COMMAND.fullmatch(text.rstrip())
    return (found[1] or "", found[2] or "") if found else None


def is_path(name: str) -> bool:
    """Whether what stands behind the slash is something in the root folder: a line that begins so is a sentence."""
    return bool(name) and Path(f"/{name}").exists()


def nearest(name: str, known: Iterable[str]) -> str:
    """The name that may have been meant, with its slash; empty where none is near."""
    near = difflib.get_close_matches(name, tuple(known), n=1)
    return f"/{near[0]}" if near else ""


def expand_command(text: str, workspace: Path, *, trusted_once: bool) -> str:
    """The message that a prompt stands for: itself, or what a line `/NAME ...` of the user's own means.

    Raises:
        UsageError: there is no such command, it stands in a folder that is not trusted, or is empty.
    """
    if (command := parse_command(text)) is None:
        return text
    from graph_agent.app.chat_input import user_commands  # with all that reads a project's files

    name, arguments = command
    found = user_commands(workspace, once=trusted_once)
    message = found.message(name, arguments)
    if message == "":
        raise UsageError(f"/{name} stands for an empty message; there is nothing to do")
    if message is None and not is_path(name):
        raise UsageError(_no_command(name, found.known))
    return text if message is None else message


def _no_command(name: str, own: Iterable[str]) -> str:
    if name in COMMANDS:
        return f"/{name} is a command of the chat; `run` takes options (`run --help`) and commands of your own"
    near = nearest(name, own)
    way = f"did you mean {near}? A" if near else "a"
    return f"/{name} is no command of yours; {way} line that begins with a blank is sent as it stands"
