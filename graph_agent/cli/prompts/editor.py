"""The person's own programs: an editor for the arguments of a call or a message, and a pager."""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Never

from graph_agent.app.chat_input import editor_words
from graph_agent.cli.supervisor import catch_signals
from graph_agent.config.paths import read_plain_text
from graph_agent.errors import AgentError
from graph_agent.wording import escape

__all__ = ["EditFailed", "PagerFailed", "edit_arguments", "edit_text", "show_in_pager"]


_HOW_TO_LEAVE_VI = (
    "Opening vi: Esc, then :wq and Enter saves; :q! and Enter changes nothing.\r\nSet EDITOR to use another editor."
)
_READING_S = 1.5
"""How long the message stays before vi covers it."""


class EditFailed(AgentError):
    """The editor left nothing usable; the message says why."""


class PagerFailed(AgentError):
    """The text was not shown; the message says why."""


async def show_in_pager(text: str, coloured: str) -> None:
    """Show a text in $PAGER, else in less, until the person leaves it; less gets the coloured one.

    Raises:
        PagerFailed: the pager could not be run, or failed.
    """
    command = os.environ.get("PAGER") or "less -R"
    try:
        is_less = Path(editor_words(command)[0]).name == "less"
        # Ctrl-C is a key of the pager and must not end the chat.
        with catch_signals(lambda _: None, signal.SIGINT):
            process = await asyncio.create_subprocess_exec(
                *editor_words(command), stdin=asyncio.subprocess.PIPE, env={"LESS": "R", **os.environ}
            )
            await process.communicate((coloured if is_less else text).encode(errors="backslashreplace"))
    except (OSError, ValueError) as error:
        raise PagerFailed(f"The pager {command!r} could not be started ({error}).") from error
    if process.returncode:
        raise PagerFailed(f"The pager {command!r} ended with code {process.returncode}.")


async def edit_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Open the arguments as JSON in $VISUAL or $EDITOR and read them back.

    Raises:
        EditFailed: the editor could not be run or failed, or what it left is not a JSON object.
    """
    shown = json.dumps(arguments, indent=2, ensure_ascii=False)
    # Every character that an editor would obey or hide is an escape of the same value.
    safe = (char if escape(char, multiline=True) == char else json.dumps(char)[1:-1] for char in shown)
    text = await edit_text(f"{''.join(safe)}\n", "arguments.json")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise EditFailed(f"The edited text is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise EditFailed(f"The arguments must be a JSON object, not {type(value).__name__}.")
    return value


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


async def edit_text(text: str, name: str = "message.md") -> str:
    """Open a text in $VISUAL or $EDITOR, under this name, and read it back.

    Raises:
        EditFailed: the editor could not be run or failed, or what it left is no text.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if not command:
        command = "vi"
        sys.stdout.write(f"{_HOW_TO_LEAVE_VI}\r\n")
        sys.stdout.flush()
        await asyncio.sleep(_READING_S)
    with tempfile.TemporaryDirectory(prefix="graph-agent-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            # Ctrl-C is a key of the editor and must not end the chat.
            with catch_signals(lambda _: None, signal.SIGINT):
                process = await asyncio.create_subprocess_exec(*editor_words(command), str(path))
                code = await process.wait()
        except (OSError, ValueError) as error:
            raise EditFailed(
                f"The editor {command!r} could not be started ({error}). Set EDITOR to another one."
            ) from error
        if code:
            raise EditFailed(f"The editor {command!r} ended with code {code}. Nothing was changed.")
        try:
            return read_plain_text(path)
        except (OSError, ValueError) as error:
            raise EditFailed(f"The edited file cannot be read: {error}") from error
