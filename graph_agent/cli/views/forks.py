"""What came of forking a thread from the command line."""

import asyncio
from dataclasses import asdict
from pathlib import Path

from graph_agent.app.forking import fork
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.errors import UsageError

__all__ = ["fork_thread"]


def fork_thread(database: Path, text: str, workspace: str | None, *, as_id: str | None, as_json: bool) -> None:
    """Fork and say how to go on with the new thread.

    Raises:
        UsageError: the id of the new thread is blank.
    """
    if as_id is not None and not as_id.strip():
        raise UsageError("--as needs an id that is not blank; leave it out to have one made")
    made = asyncio.run(fork(database, text, thread_id=as_id, workspace=workspace))
    if as_json:
        print_json(asdict(made))
        return
    told = [
        f"forked thread {made.parent_thread} at checkpoint {made.checkpoint_id}: {_counted(made.turns, 'turn')}",
        f"go on with: graph-agent resume {made.thread_id}",
    ]
    if made.open_calls:
        told.insert(1, f"{_counted(made.open_calls, 'call')} of it will be asked about again")
    print_lines(escape(line) for line in told)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
