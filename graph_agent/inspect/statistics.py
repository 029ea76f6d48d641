"""How often each tool ran, how that ended and how long it took: counted from the journal, in every thread."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Any

from graph_agent.inspect.connection import ReadOnlyDatabase

__all__ = ["ToolStatistics", "read_statistics"]

# An attempt that was claimed and never entered its tool is no execution.
_ATTEMPTS = """
    SELECT l.tool_name, j.status, (julianday(j.ended_at) - julianday(j.started_at)) * 86400
    FROM journal j JOIN ledger l USING (thread_id, call_id)
    WHERE j.status <> 'not_started' ORDER BY l.tool_name"""


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """One tool over every thread of a database, undone attempts included."""

    tool: str
    executions: int
    """Attempts that began."""
    successes: int
    failures: int
    unfinished: int
    """Attempts that were broken off, or still run."""
    total_s: float
    """Seconds that the attempts with a result took together."""
    average_s: float | None
    p95_s: float | None
    """95 of 100 attempts with a result took no longer."""


def read_statistics(database: ReadOnlyDatabase) -> list[ToolStatistics]:
    """The statistics of each tool that ever ran, by name."""
    attempts = groupby(database.rows(_ATTEMPTS), key=itemgetter(0))
    return [_of_tool(str(tool), list(rows)) for tool, rows in attempts]


def _of_tool(tool: str, rows: Sequence[tuple[Any, ...]]) -> ToolStatistics:
    statuses = [status for _, status, _ in rows]
    successes, failures = statuses.count("success"), statuses.count("error")
    seconds = sorted(_seconds(rows))
    return ToolStatistics(
        tool=tool,
        executions=len(rows),
        successes=successes,
        failures=failures,
        unfinished=len(rows) - successes - failures,
        total_s=round(sum(seconds), 3),
        average_s=round(sum(seconds) / len(seconds), 3) if seconds else None,
        p95_s=seconds[ceil(0.95 * len(seconds)) - 1] if seconds else None,
    )


def _seconds(rows: Iterable[tuple[Any, ...]]) -> Iterable[float]:
    return (
        round(max(took, 0.0), 3) for _, status, took in rows if status in ("success", "error") and took is not None
    )
