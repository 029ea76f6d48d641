"""The checkpoints of a thread as a list, and how often each node ran on the way to one of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from graph_agent.ports.checkpoint_values import planned_nodes
from graph_agent.ports.read_store import ReadStore, StoredCheckpoint

__all__ = ["END", "START", "HistoryEntry", "Visits", "read_history", "read_visits"]

START, END = "START", "END"
"""Where a turn begins and ends, among the names of the nodes."""
_INTERNAL = ("branch:", "join:", "__")
"""Beginnings of the names of channels that steer LangGraph and are no part of the state."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One checkpoint."""

    checkpoint_id: str
    parent_id: str | None
    """None: the first one, or its parent was pruned."""
    created_at: str
    step: int | None
    node: str
    """The nodes that ran since its parent, joined by commas; empty for the checkpoint that takes in a message."""
    changed: tuple[str, ...]
    """The channels that were written since its parent."""
    calls: tuple[str, ...]
    """Ids of the calls whose records were written since its parent."""
    is_head: bool
    source: str = ""
    """input took in a message, loop ran nodes, fork and update put it there from outside."""


def read_history(store: ReadStore, thread_id: str, head: str, newest: int | None = None) -> list[HistoryEntry]:
    """Every checkpoint that exists, or the newest so many, newest first; those of branches that were left included.

    Raises:
        DamagedDatabase: what is stored cannot be decoded.
    """
    checkpoints = store.checkpoints(thread_id, newest)
    decoded = {stored.id: stored.checkpoint for stored in checkpoints}
    parents = {stored.parent_id for stored in checkpoints if stored.parent_id}
    calls: dict[str, dict[str, None]] = {}
    """Ids of calls by the checkpoint at which the write that names them was stored."""
    for checkpoint_id, update in () if store.is_foreign else store.call_writes(thread_id, sorted(parents)):
        if isinstance(update, dict):
            ids = (key for key in update if not key.startswith("__"))
            calls.setdefault(checkpoint_id, {}).update(dict.fromkeys(ids))
    for parent_id in parents - decoded.keys():
        if (found := store.checkpoint(thread_id, parent_id)) is not None:
            decoded[parent_id] = found.checkpoint
    entries = []
    for stored in checkpoints:
        parent = decoded.get(stored.parent_id or "") or {}
        before, now = (one.get("channel_versions") or {} for one in (parent, stored.checkpoint))
        changed = [name for name in sorted(now) if now[name] != before.get(name) and not name.startswith(_INTERNAL)]
        source = stored.metadata.get("source")
        entries.append(
            HistoryEntry(
                stored.id,
                stored.parent_id,
                stored.checkpoint.get("ts", ""),
                stored.metadata.get("step"),
                ", ".join(planned_nodes(parent)) if source == "loop" else "",
                tuple(changed),
                tuple(calls.get(stored.parent_id or "", ())),
                stored.id == head,
                str(source or ""),
            )
        )
    return entries[::-1]


@dataclass(frozen=True, slots=True)
class Visits:
    """Counted along the line of checkpoints that leads to the one asked for, without branches that were left."""

    nodes: Mapping[str, int]
    """Supersteps in which the node ran: parallel tasks of one node are one visit. In the order of the first."""
    edges: Mapping[tuple[str, str], int]
    """Times that control went from one node to another."""
    since: str | None
    """The first checkpoint that counted, where older ones were pruned; else None."""


def read_visits(store: ReadStore, thread_id: str, checkpoint_id: str) -> Visits:
    """Count the visits on the way to a checkpoint.

    Raises:
        DamagedDatabase: what is stored cannot be decoded.
    """
    line = list(store.ancestors(thread_id, checkpoint_id))[::-1]
    nodes: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for before, after in pairwise(line):
        # Any other checkpoint was put there from outside: no node ran to make it.
        if after.metadata.get("source") == "loop":
            ran = _next_nodes(before.checkpoint)
            nodes.update(ran)
            edges.update(_taken_edges(store, thread_id, before, (ran, _next_nodes(after.checkpoint) or (END,))))
    is_pruned = bool(line) and line[0].parent_id is not None
    return Visits(dict(nodes), dict(edges), line[0].id if is_pruned else None)


def _taken_edges(
    store: ReadStore, thread_id: str, before: StoredCheckpoint, sides: tuple[Sequence[str], Sequence[str]]
) -> Iterable[tuple[str, str]]:
    """From which node to which control went; of several that ran at once their writes decide."""
    ran, then = sides
    if len(ran) == 1:
        return product(ran, then)
    led = [
        (path.rpartition(", ")[2], name)
        for path, channel in store.written_channels(thread_id, before.id)
        for name in then
        if channel.endswith(f":{name}")
    ]
    edges = [(node, name) for node in ran for name in then if (node, name) in led]
    ended = [node for node in ran if node not in {node for node, _ in edges}]
    return [*edges, *product(ended, (END,) if edges else then)]


def _next_nodes(checkpoint: Mapping[str, Any]) -> tuple[str, ...]:
    if known := planned_nodes(checkpoint):
        return known
    is_input = "__start__" in (checkpoint.get("channel_values") or {})
    return (START,) if is_input else ()
