"""How often each tool ran, with what result and how long it took: counted from the journal of every thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from operator import itemgetter

from graph_agent.ports.read_store import ReadStore

__all__ = ["ToolStatistics", "read_statistics"]


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """One tool over every thread of a database, reverted attempts included."""

    tool: str
    executions: int
    """Attempts that started."""
    successes: int
    failures: int
    unfinished: int
    """Attempts that were interrupted, or still run."""
    total_s: float
    """Seconds that the attempts with a result took together."""
    average_s: float | None
    p95_s: float | None
    """95 of 100 attempts with a result took no longer."""


def read_statistics(store: ReadStore) -> list[ToolStatistics]:
    """The statistics of each tool that ever ran, by name."""
    return [_of_tool(tool, list(runs)) for tool, runs in groupby(store.tool_runs(), key=itemgetter(0))]


def _of_tool(tool: str, runs: Sequence[tuple[str, str, float | None]]) -> ToolStatistics:
    statuses = [status for _, status, _ in runs]
    successes, failures = statuses.count("success"), statuses.count("error")
    seconds = sorted(
        round(max(took, 0.0), 3) for _, status, took in runs if status in ("success", "error") and took is not None
    )
    return ToolStatistics(
        tool=tool,
        executions=len(runs),
        successes=successes,
        failures=failures,
        unfinished=len(runs) - successes - failures,
        total_s=round(sum(seconds), 3),
        average_s=round(sum(seconds) / len(seconds), 3) if seconds else None,
        p95_s=seconds[ceil(0.95 * len(seconds)) - 1] if seconds else None,
    )
