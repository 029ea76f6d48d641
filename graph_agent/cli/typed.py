"""What a person typed as the message it is: a slash command of the user's own stands for one. Sends nothing."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

from graph_agent.cli.commands_of_chat import COMMANDS
from graph_agent.errors import UsageError

__all__ = ["command_typed", "is_path", "message_typed", "nearest"]

_COMMAND = re.compile(r"/(?:([^\s/]+)(?:[^\S\n]+(.*))?)?")


def command_typed(text: str) -> tuple[str, str] | None:
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


def message_typed(text: str, workspace: Path, *, trusted_once: bool) -> str:
    """The message that a prompt stands for: itself, or what a line `/NAME ...` of the user's own means.

    Raises:
        UsageError: there is no such command, it stands in a folder that is not trusted, or is empty.
    """
    if (command := command_typed(text)) is None:
        return text
    from graph_agent.app.user_commands import user_commands  # with all that reads a project's files

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
