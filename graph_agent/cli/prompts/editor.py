"""Lets a person change the arguments of a call, or a message, in their own editor. Judges nothing."""

import asyncio
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Never

from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.render.escape import escape
from graph_agent.cli.supervisor import catch_signals
from graph_agent.errors import AgentError

__all__ = ["EditFailed", "edit_arguments", "edit_text"]


class EditFailed(AgentError):
    """The editor did not leave anything usable behind; the message says why."""


async def edit_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Open the arguments as JSON in $VISUAL or $EDITOR and read them back.

    Raises:
        NotEdited: the editor could not be run or failed, or what it left is not a JSON object.
    """
    return _parsed(await edit_text(_shown(arguments), "arguments.json"))


async def edit_text(text: str, name: str = "message.md") -> str:
    """Open a text in $VISUAL or $EDITOR, under this name, and read it back.

    Raises:
        NotEdited: the editor could not be run or failed, or what it left is no text.
    """
    with tempfile.TemporaryDirectory(prefix="graph-agent-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", errors="replace")
        await _edit(path)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise EditFailed(f"what the editor left cannot be read: {error}") from error


def _shown(arguments: Mapping[str, Any]) -> str:
    """JSON in which whatever an editor would obey or hide stands as an escape, which reads back as it was."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    safe = (c if escape(c, multiline=True) == c else json.dumps(c)[1:-1] for c in text)
    return f"{''.join(safe)}\n"


async def _edit(path: Path) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        # Ctrl-C in an editor is a key of the editor's: it must not end the chat beside it.
        with catch_signals(_leave_to_editor, signal.SIGINT):
            process = await asyncio.create_subprocess_exec(*shlex.split(command), str(path))
            code = await process.wait()
    except (OSError, ValueError) as error:
        raise EditFailed(f"the editor {command!r} could not be started ({error}); set EDITOR to another") from error
    if code:
        raise EditFailed(f"the editor {command!r} ended with code {code}; nothing was changed")


def _leave_to_editor(_code: ExitCode) -> None:
    return None


def _no_json(name: str) -> Never:
    raise ValueError(f"{name} is no number in JSON")


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        raise EditFailed(f"what the editor left is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise EditFailed(f"the arguments must be a JSON object, not {type(value).__name__}")
    return value
