"""What reads threads without running them: the database reader, the ids that completion offers, and the graph with
the place of a thread in it.

Importing it loads little, since a user who has pressed Tab waits for it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graph_agent.config.paths import ServerPath
from graph_agent.graph.edges import EDGES, END, START
from graph_agent.storage import open_read_connection, open_read_store, server_stamp
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.inspect import Inspection, Reader, Visits

__all__ = [
    "GraphEdge",
    "GraphNode",
    "GraphView",
    "SuggestedCheckpoint",
    "SuggestedThread",
    "build_graph",
    "database_stamp",
    "format_mermaid",
    "read_database",
    "suggest_checkpoints",
    "suggest_threads",
]


def read_database(path: Path) -> "Reader":
    """Open a database file: one of ours, of any version up to this one, or one of LangGraph's own SQLite saver.

    Raises:
        NothingYet: there is none.
        NewerSchema: a newer version of the program wrote it.
        DamagedDatabase: it is neither, or damaged.
        StorageError: it cannot be read.
    """
    from graph_agent.inspect import Reader  # noqa: PLC0415 - ids are completed without it

    return Reader(open_read_store(path))


def database_stamp(database: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Inode, size and time of the database and its log: different if one has changed or was replaced.

    Of a server the number of its next transaction, or None while it cannot be asked.
    """
    if isinstance(database, ServerPath):
        return (server_stamp(database),)

    def stat(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return stat(database), stat(database.with_name(f"{database.name}-wal"))


_THREADS = """SELECT t.thread_id, t.title, t.updated_at, t.next_nodes = '[]' FROM threads t
    WHERE (:n = 0 OR substr(t.thread_id, 1, :n) = :typed OR substr(t.thread_id, -:n) = :typed)
    AND (t.checkpoint_id IS NOT NULL OR t.turns > 0 OR t.title <> '' OR t.parent_thread IS NOT NULL
        OR t.next_nodes <> '[]'
        OR EXISTS (SELECT 1 FROM inbox i WHERE i.thread_id = t.thread_id AND i.taken_at IS NULL))
    ORDER BY t.updated_at DESC, t.thread_id LIMIT :most"""
_CHECKPOINTS = """SELECT checkpoint_id, (SELECT title FROM threads t WHERE t.thread_id = found.thread_id), thread_id
    FROM (SELECT checkpoint_id, min(thread_id) AS thread_id FROM checkpoints WHERE checkpoint_ns = ''
        AND (:n = 0 OR substr(checkpoint_id, 1, :n) = :typed OR substr(checkpoint_id, -:n) = :typed)
        GROUP BY checkpoint_id ORDER BY checkpoint_id DESC LIMIT :most) found"""


class SuggestedThread(NamedTuple):
    """What completion shows of a thread."""

    thread_id: str
    title: str
    updated_at: str
    is_idle: bool
    """Whether it waits only for a message; False for a sub-agent that was abandoned."""


class SuggestedCheckpoint(NamedTuple):
    """A checkpoint and its thread: where forks have copies of it, the first thread by id."""

    checkpoint_id: str
    title: str
    """Of the thread; empty if it has none."""
    thread_id: str


def suggest_threads(database: Path, typed: str, most: int) -> Iterator[SuggestedThread]:
    """The newest threads with a message whose ids begin or end with what was typed.

    Raises:
        NothingYet: there is no database.
        StorageError: it cannot be read.
    """
    with closing(open_read_connection(database)) as source:
        for thread_id, title, updated_at, is_idle in source.stream(_THREADS, _typed(typed, most)):
            yield SuggestedThread(str(thread_id), str(title or ""), str(updated_at or ""), bool(is_idle))


def suggest_checkpoints(database: Path, typed: str, most: int) -> Iterator[SuggestedCheckpoint]:
    """The newest checkpoints of all threads whose ids begin or end with what was typed.

    Raises:
        NothingYet: there is no database.
        StorageError: it cannot be read.
    """
    with closing(open_read_connection(database)) as source:
        for checkpoint_id, title, thread_id in source.stream(_CHECKPOINTS, _typed(typed, most)):
            yield SuggestedCheckpoint(str(checkpoint_id), str(title or ""), str(thread_id))


def _typed(typed: str, most: int) -> dict[str, str | int]:
    return {"typed": typed, "n": len(typed), "most": most}


_FACTS = ("thread_id", "checkpoint_id", "status", "next", "since")
_PLAIN_ID = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset(("begin", "class", "default", "end", "graph", "style", "subgraph"))
_MERMAID_STYLES = (
    "classDef default fill:#f2f0ff,line-height:1.2",
    "classDef first fill-opacity:0",
    "classDef last fill:#bfb6fc",
    "classDef current fill:#fff8c5,stroke:#9a6700,stroke-width:3px,color:#1f2328",
)


class GraphNode(NamedTuple):
    """A node, or one of the two ends."""

    name: str
    is_end: bool = False
    visits: int | None = None
    """Number of supersteps in which the node ran; None without a thread."""
    is_current: bool = False
    """Whether this node runs next; END if the thread is idle."""


class GraphEdge(NamedTuple):
    """All outcomes that lead from one node to another."""

    source: str
    target: str
    outcomes: tuple[str, ...] = ()
    visits: int | None = None


class GraphView(NamedTuple):
    """The graph, and where one thread is in it."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    facts: Mapping[str, Any] = {**dict.fromkeys(_FACTS), "next": ()}
    is_head: bool = True


def build_graph(
    found: "Inspection | None" = None, visits: "Visits | None" = None, *, is_foreign: bool = False
) -> GraphView:
    """Combine the edge table with what a thread visited. Of a foreign graph only the visits are known."""
    outcomes: dict[tuple[str, str], list[str]] = {}
    for edge in () if is_foreign else EDGES:
        outcomes.setdefault((edge.source, edge.target), []).append(edge.outcome)
    for pair in visits.edges if visits else ():
        outcomes.setdefault(pair, [])
    inner = dict.fromkeys(name for name in (*(source for source, _ in outcomes), *(end for _, end in outcomes)))
    names = [START, *(name for name in inner if name not in (START, END)), END]
    edges = tuple(
        GraphEdge(*pair, tuple(labels), None if visits is None else visits.edges.get(pair, 0))
        for pair, labels in outcomes.items()
    )
    if found is None or visits is None:
        return GraphView(tuple(GraphNode(name, name in (START, END)) for name in names), edges)
    state = found.state
    current = {START if name == "__start__" else name for name in state.next} or {END}
    counts = {name: None if name in (START, END) else visits.nodes.get(name, 0) for name in names}
    nodes = (GraphNode(name, count is None, count, name in current) for name, count in counts.items())
    values = (state.thread_id, state.checkpoint_id, found.status, list(state.next), visits.since)
    facts = dict(zip(_FACTS, values, strict=True))
    return GraphView(tuple(nodes), edges, facts, state.is_head)


def format_mermaid(graph: GraphView) -> Iterator[str]:
    """The graph as Mermaid text, in the form that LangGraph's `draw_mermaid` writes."""
    ids = {node.name: _mermaid_id(number, node) for number, node in enumerate(graph.nodes)}
    yield "graph TD;"
    for node in graph.nodes:
        label = _quote(node.name if not node.visits else f"{node.name} ×{node.visits}")
        shape = f"([{label}])" if node.is_end else f"({label})"
        style = ":::first" if node.name == START else ":::last" if node.name == END else ""
        yield f"    {ids[node.name]}{shape}{':::current' if node.is_current else style}"
    for edge in graph.edges:
        is_conditional = sum(one.source == edge.source for one in graph.edges) > 1 or len(edge.outcomes) > 1
        label = " ".join(("/".join(edge.outcomes), f"×{edge.visits}" if edge.visits else "")).strip()
        plain, labelled = ("-.->", "-. {} .->") if is_conditional else ("-->", "-- {} -->")
        arrow = labelled.format(_quote(label)) if label else plain
        yield f"    {ids[edge.source]} {arrow} {ids[edge.target]};"
    yield from (f"    {style}" for style in _MERMAID_STYLES)


def _mermaid_id(number: int, node: GraphNode) -> str:
    if node.is_end:
        return "__start__" if node.name == START else "__end__"
    return node.name if _PLAIN_ID.fullmatch(node.name) and node.name not in _RESERVED else f"n{number}"


def _quote(text: str) -> str:
    safe = escape(text)
    for sign, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        safe = safe.replace(sign, entity)
    return safe if re.fullmatch(r"\w+", safe) and safe not in _RESERVED else f'"{safe}"'
