"""`tools stats`: how the tools fared, as a table and as JSON."""

from dataclasses import asdict
from pathlib import Path

from graph_agent.cli.views.table import format_table, print_json, print_lines
from graph_agent.errors import NothingYet
from graph_agent.inspect import Reader, ToolStatistics

__all__ = ["show_statistics"]

_HEADINGS = ("TOOL", "RAN", "GOOD", "FAILED", "UNFINISHED", "TOTAL", "AVERAGE", "P95")


def show_statistics(database: Path, *, as_json: bool) -> None:
    """Print the statistics of every tool that ever ran."""
    try:
        with Reader.open(database) as reader:
            found = reader.statistics()
    except NothingYet:
        found = []
    if as_json:
        print_json({"tools": [asdict(item) for item in found]})
    elif found:
        print_lines(format_table(_HEADINGS, [_row(item) for item in found]))
    else:
        print_lines(["No tool has run yet."])


def _row(item: ToolStatistics) -> tuple[str, ...]:
    counts = (item.executions, item.successes, item.failures, item.unfinished)
    times = (item.total_s, item.average_s, item.p95_s)
    return item.tool, *map(str, counts), *map(_seconds, times)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
