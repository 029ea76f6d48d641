"""What came of approving a call with other arguments from the command line."""

import asyncio
import json
import os
from typing import Any

from graph_agent.app.editing import edit_approval
from graph_agent.cli.views.answers import tell
from graph_agent.cli.views.place import database_of
from graph_agent.errors import UsageError

__all__ = ["edit"]


def edit(call: str, text: str, db: str | None, *, as_json: bool) -> None:
    """Give the answer and tell which one stands; exit code 1 when it is somebody else's.

    Raises:
        UsageError: the text is no JSON object.
    """
    arguments = _arguments(text)
    given = asyncio.run(edit_approval(database_of(db), call, arguments, by=f"cli pid {os.getpid()}"))
    tell(given, db, as_json=as_json)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--arguments {text!r} is not JSON ({error}); give one JSON object") from error
    if not isinstance(value, dict):
        raise UsageError(f"--arguments {text!r} is no JSON object; name every argument of the call in one")
    return value
