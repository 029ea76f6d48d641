"""Which way a thread went through its graph: how often each node ran and each edge was taken."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.line import Stored, line_to
from graph_agent.inspect.planning import planned_nodes

__all__ = ["END", "START", "Visits", "read_visits"]

_WRITES = (
    """SELECT task_path, channel FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"""
)

START, END = "START", "END"
"""Where a turn begins and ends, among the names of the nodes."""


@dataclass(frozen=True, slots=True)
class Visits:
    """Counted along the one line of checkpoints that leads to the one asked for; left branches do not count."""

    nodes: Mapping[str, int]
    """Supersteps in which the node ran: parallel tasks of one node are one visit. In the order of the first."""
    edges: Mapping[tuple[str, str], int]
    """Times that control went from one node to another."""
    since: str | None
    """The first checkpoint that counted, where older ones were pruned; else None."""


def read_visits(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str) -> Visits:
    """Count the visits on the way to a checkpoint.

    Raises:
        DamagedDatabase: what is stored cannot be decoded.
    """
    line = list(line_to(database, thread_id, checkpoint_id))[::-1]
    nodes: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for before, after in pairwise(line):
        # Else it was put there from outside, and no node ran to make it.
        if after.metadata.get("source") == "loop":
            ran = _next(before.checkpoint)
            nodes.update(ran)
            edges.update(_ways(database, thread_id, before, (ran, _next(after.checkpoint) or (END,))))
    is_cut = bool(line) and line[0].parent_id is not None
    return Visits(dict(nodes), dict(edges), line[0].id if is_cut else None)


def _ways(
    database: ReadOnlyDatabase, thread_id: str, before: Stored, sides: tuple[Sequence[str], Sequence[str]]
) -> Iterable[tuple[str, str]]:
    """From which node to which control went; of several that ran at once their writes tell."""
    ran, then = sides
    if len(ran) == 1:
        return product(ran, then)
    written = database.rows(_WRITES, (thread_id, before.id))
    led = [
        (path.rpartition(", ")[2], name)
        for path, channel in written
        for name in then
        if channel.endswith(f":{name}")
    ]
    ways = [(node, name) for node in ran for name in then if (node, name) in led]
    ended = [node for node in ran if node not in {node for node, _ in ways}]
    return [*ways, *product(ended, (END,) if ways else then)]


def _next(checkpoint: Mapping[str, Any]) -> tuple[str, ...]:
    if known := planned_nodes(checkpoint):
        return known
    is_input = "__start__" in (checkpoint.get("channel_values") or {})
    return (START,) if is_input else ()
