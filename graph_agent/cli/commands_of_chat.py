"""The names of the slash commands and of the modes they take. Values only: completion needs them at once."""

from typing import NamedTuple

__all__ = ["COMMANDS", "MODES", "Command"]

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
