"""The names of the slash commands and of the modes they take. Values only: completion needs them at once."""

from typing import NamedTuple

__all__ = ["COMMANDS", "MODES", "Command"]

MODES = ("default", "acceptEdits", "plan", "dontAsk")
"""What `/mode` may choose; bypassPermissions is for the command line alone."""


class Command(NamedTuple):
    """One slash command."""

    usage: str
    does: str


COMMANDS: dict[str, Command] = {
    "help": Command("/help", "show this"),
    "threads": Command("/threads", "list every thread"),
    "calls": Command("/calls", "show every call of this thread with its status"),
    "inspect": Command("/inspect [PATH]", "show the state of the graph, or one piece of it"),
    "mode": Command("/mode [NAME]", f"show the permission mode, or take another: {', '.join(MODES)}"),
    "retry": Command("/retry", "ask the model again after an error, a limit or a stop"),
    "clear": Command("/clear", "clear the screen"),
    "quit": Command("/quit", "leave; the thread can be resumed"),
}
