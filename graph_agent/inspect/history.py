"""The checkpoints of a thread as a list: when each was made, by which node, and what it changed.

Which way a thread went through its graph: how often each node ran and each edge was taken.

What to say about the id of a checkpoint that stood once and was pruned.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from graph_agent.inspect.checkpoint_values import Stored, decode, decode_checkpoint, decode_metadata, line_to
from graph_agent.inspect.connection import ReadOnlyDatabase
from graph_agent.inspect.state import planned_nodes

__all__ = ["END", "START", "HistoryEntry", "Visits", "pruned_answer", "read_history", "read_visits"]

_INTERNAL = ("branch:", "join:", "__")
"""Beginnings of the names of channels that steer the engine and are nobody's state."""


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
    """How it came about: input took in a message, loop ran nodes, fork and update put it there from outside."""


def read_history(database: ReadOnlyDatabase, thread_id: str, head: str) -> list[HistoryEntry]:
    """Every checkpoint that still stands, newest first, those of branches that were left included.

    Raises:
        DamagedDatabase: what is stored cannot be decoded.
    """
    rows = database.rows(
        """SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
        WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id""",
        (thread_id,),
    )
    written = {} if database.is_foreign else _calls_written(database, thread_id)
    decoded = {row[0]: decode_checkpoint(row[2], row[3]) for row in rows}
    entries = []
    for checkpoint_id, parent_id, _, _, metadata in rows:
        checkpoint = decoded[checkpoint_id]
        parent = decoded.get(parent_id) or {}
        known = decode_metadata(metadata)
        entries.append(
            HistoryEntry(
                checkpoint_id,
                parent_id,
                checkpoint.get("ts", ""),
                known.get("step"),
                ", ".join(planned_nodes(parent)) if known.get("source") == "loop" else "",
                _changed(checkpoint, parent),
                written.get(parent_id or "", ()),
                checkpoint_id == head,
                str(known.get("source") or ""),
            )
        )
    return entries[::-1]


def _changed(checkpoint: Mapping[str, Any], parent: Mapping[str, Any]) -> tuple[str, ...]:
    """The channels whose versions differ from the parent's, without the engine's own."""
    now, before = checkpoint.get("channel_versions") or {}, parent.get("channel_versions") or {}
    return tuple(
        name
        for name, version in sorted(now.items())
        if version != before.get(name) and not name.startswith(_INTERNAL)
    )


def _calls_written(database: ReadOnlyDatabase, thread_id: str) -> dict[str, tuple[str, ...]]:
    """Call ids by the checkpoint at which the write that names them was stored."""
    rows = database.rows(
        """SELECT checkpoint_id, type, value FROM writes
        WHERE thread_id = ? AND checkpoint_ns = '' AND channel = 'calls' ORDER BY checkpoint_id, task_path, idx""",
        (thread_id,),
    )
    named: dict[str, dict[str, None]] = {}
    for checkpoint_id, kind, value in rows:
        update = decode(kind, value)
        if isinstance(update, dict):
            ids = (key for key in update if not key.startswith("__"))
            named.setdefault(checkpoint_id, {}).update(dict.fromkeys(ids))
    return {checkpoint_id: tuple(ids) for checkpoint_id, ids in named.items()}


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


_SHORTEST = 4
_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'pruned'"
_PRUNED = """
SELECT thread_id, checkpoint_id, (SELECT min(c.checkpoint_id) FROM checkpoints c WHERE c.thread_id = p.thread_id
    AND c.checkpoint_ns = '' AND c.checkpoint_id > p.checkpoint_id)
FROM pruned p WHERE (checkpoint_id = :id
    OR (length(:id) >= :shortest AND (substr(checkpoint_id, 1, :n) = :id OR substr(checkpoint_id, -:n) = :id)))
    AND (:thread = '' OR substr(thread_id, 1, length(:thread)) = :thread
        OR substr(thread_id, -length(:thread)) = :thread)
ORDER BY checkpoint_id = :id DESC, thread_id LIMIT 1
"""


def pruned_answer(database: ReadOnlyDatabase, text: str) -> str | None:
    """The sentence, with the next checkpoint that still stands; None when no such id was pruned.

    The text is an id, a part of one, or THREAD:ID.
    """
    if not database.rows(_HAS_TABLE):
        return None
    thread, _, own = text.rpartition(":")
    named = {"id": own, "n": len(own), "thread": thread, "shortest": _SHORTEST}
    rows = database.rows(_PRUNED, named)
    if not rows:
        return None
    [(thread_id, checkpoint_id, following)] = rows
    advice = (
        f"the next one that still stands is {following}"
        if following
        else f"`graph-agent inspect {thread_id}` shows what stands"
    )
    return f"checkpoint {checkpoint_id} of thread {thread_id} was pruned; {advice}."
