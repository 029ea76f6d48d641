"""`threads delete` and `threads rename`: what is asked before, and what came of it."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.app.deleting import Deleted
    from graph_agent.inspect import ThreadSummary

__all__ = ["ask_to_delete", "tell_deleted", "tell_renamed"]


def ask_to_delete(threads: Sequence["ThreadSummary"]) -> bool:
    """Show what would go and ask.

    Raises:
        UsageError: nobody is there to answer.
    """
    if not sys.stdin.isatty():
        raise UsageError("deleting cannot be undone, and nobody is here to ask; --yes does it without asking")
    open_calls = {thread.thread_id: thread.pending_approvals + thread.interrupted_calls for thread in threads}
    for thread in threads:
        count = open_calls[thread.thread_id]
        asking = f", {count} open question{'s' * (count != 1)}" if count else ""
        print_lines(
            [escape(f"{thread.thread_id}  {thread.turns} turn{'s' * (thread.turns != 1)}{asking}  {thread.title}")]
        )
    what = "this thread" if len(threads) == 1 else f"these {len(threads)} threads"
    sys.stdout.write(f"Delete {what}, with all that was said and recorded? It cannot be undone. [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def tell_deleted(done: "Deleted", *, as_json: bool) -> None:
    """Tell what went."""
    if as_json:
        print_json({"deleted": [one.thread_id for one in done.threads], "collected": asdict(done.collected)})
    elif done.threads:
        print_lines(escape(f"deleted: {one.thread_id}  {one.title}") for one in done.threads)
    else:
        print_lines(["nothing was deleted"])


def tell_renamed(thread_id: str, title: str, *, as_json: bool) -> None:
    """Tell what the thread is called now."""
    if as_json:
        print_json({"thread_id": thread_id, "title": title})
    else:
        print_lines([escape(f"{thread_id} is now called: {title}")])
