"""What is told of a prune, and the amounts it is ordered with."""

import re
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.app.pruning import Pruned

__all__ = ["age_of", "size_of", "tell_pruned"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}


def age_of(text: str) -> timedelta:
    """A time such as `30d`, `12h` or `2w`.

    Raises:
        UsageError: it is no such time.
    """
    found = re.fullmatch(r"(\d{1,6})\s*([smhdw])", text.strip().lower())
    if found is None:
        raise UsageError(f"--older-than {text!r} is no age; give one such as 12h, 30d or 2w")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def size_of(text: str) -> int:
    """A size such as `500MB`, `2G` or `1000000`, in bytes.

    Raises:
        UsageError: it is no such size.
    """
    found = re.fullmatch(r"(\d{1,15})\s*([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise UsageError(f"--max-size {text!r} is no size; give one such as 500MB or 2G")
    return int(found[1]) * _BYTES[found[2]]


def tell_pruned(done: "Pruned", *, as_json: bool) -> None:
    """Print what went and what the file has now."""
    if as_json:
        print_json({**asdict(done), "threads": [asdict(one) for one in done.threads]})
        return
    lines = [
        f"{one.thread_id}: {one.checkpoints} checkpoints and {one.snapshots} snapshots went"
        for one in done.threads
        if one.checkpoints or one.snapshots
    ]
    lines += [f"left alone: {one.held_by}" for one in done.threads if one.held_by]
    if done.collected.files:
        lines.append(f"{done.collected.files} files that nothing named any more went: {_mb(done.collected.bytes)}")
    lines.append(f"the database had {_mb(done.bytes_before)} and has {_mb(done.bytes_after)} now")
    print_lines(escape(line) for line in lines)


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
