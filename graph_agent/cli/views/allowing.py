"""What came of allowing a call always from the command line."""

import asyncio
import os
from dataclasses import asdict
from typing import Literal

import typer

from graph_agent.app.allowing import allow_always
from graph_agent.cli.escape import escape
from graph_agent.cli.views.answers import tell
from graph_agent.cli.views.place import database_of
from graph_agent.cli.views.screen import print_json, print_lines

__all__ = ["allow"]


def allow(call: str, scope: Literal["thread", "project", "user"], db: str | None, *, as_json: bool) -> None:
    """Give the answer and tell which one stands, and which rules; exit code 1 when it is somebody else's."""
    given, always = asyncio.run(allow_always(database_of(db), call, scope, by=f"cli pid {os.getpid()}"))
    if not as_json:
        tell(given, db, as_json=False)
        print_lines(escape(f"always, scope {always.scope}: {rule}") for rule in always.rules)
        print_lines(["`graph-agent policy list` shows what is allowed always, `policy revoke ID` takes it back"])
    elif given.accepted:
        print_json({**asdict(given), "always": {"scope": always.scope, "rules": list(always.rules)}})
    else:
        print_json(asdict(given))
        raise typer.Exit(1)
