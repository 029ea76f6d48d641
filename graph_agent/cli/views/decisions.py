"""What came of allowing a call always from the command line.

What came of approving a call with other arguments from the command line.
"""

import asyncio
import json
import os
from dataclasses import asdict
from typing import Any, Literal

import typer

from graph_agent.app.judged_approvals import allow_always, edit_approval
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.answers import print_answer
from graph_agent.cli.views.format import resolve_database
from graph_agent.cli.views.table import print_json, print_lines
from graph_agent.errors import UsageError

__all__ = ["allow", "edit_call"]


def allow(call: str, scope: Literal["thread", "project", "user"], db: str | None, *, as_json: bool) -> None:
    """Give the answer and tell which one stands, and which rules; exit code 1 when it is somebody else's."""
    given, always = asyncio.run(allow_always(resolve_database(db), call, scope, by=f"cli pid {os.getpid()}"))
    if not as_json:
        print_answer(given, db, as_json=False)
        print_lines(escape(f"always, scope {always.scope}: {rule}") for rule in always.rules)
        print_lines(["`graph-agent policy list` shows what is allowed always, `policy revoke ID` takes it back"])
    elif given.accepted:
        print_json({**asdict(given), "always": {"scope": always.scope, "rules": list(always.rules)}})
    else:
        print_json(asdict(given))
        raise typer.Exit(1)


def edit_call(call: str, text: str, db: str | None, *, as_json: bool) -> None:
    """Give the answer and tell which one stands; exit code 1 when it is somebody else's.

    Raises:
        UsageError: the text is no JSON object.
    """
    arguments = _arguments(text)
    given = asyncio.run(edit_approval(resolve_database(db), call, arguments, by=f"cli pid {os.getpid()}"))
    print_answer(given, db, as_json=as_json)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--arguments {text!r} is not JSON ({error}); give one JSON object") from error
    if not isinstance(value, dict):
        raise UsageError(f"--arguments {text!r} is no JSON object; name every argument of the call in one")
    return value
