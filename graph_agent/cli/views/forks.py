"""What is told of a fork."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from graph_agent.cli.escape import escape
from graph_agent.cli.views.counting import counted
from graph_agent.cli.views.screen import print_json, print_lines

if TYPE_CHECKING:
    from graph_agent.app.forking import Forked

__all__ = ["tell_fork"]


def tell_fork(made: "Forked", *, as_json: bool) -> None:
    """Print where the new thread comes from and how to go on with it."""
    if as_json:
        print_json(asdict(made))
        return
    told = [
        f"forked thread {made.parent_thread} at checkpoint {made.checkpoint_id}: {counted(made.turns, 'turn')}",
        f"go on with: graph-agent resume {made.thread_id}",
    ]
    if made.open_calls:
        told.insert(1, f"{counted(made.open_calls, 'call')} of it will be asked about again")
    print_lines(escape(line) for line in told)
