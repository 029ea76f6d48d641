"""What reads threads without running them: the database reader, and the graph with the place of a thread in it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.config.paths import ServerPath
from graph_agent.graph.edges import EDGES, END, START
from graph_agent.inspect import Inspection, Reader, Visits
from graph_agent.storage import open_read_store, server_stamp
from graph_agent.wording import escape

__all__ = [
    "GraphEdge",
    "GraphNode",
    "GraphView",
    "build_graph",
    "database_stamp",
    "format_mermaid",
    "read_database",
]


def read_database(path: Path) -> Reader:
    """Open a database file: one of ours, of any version up to this one, or one of LangGraph's own SQLite saver.

    Raises:
        NothingYet: there is none.
        NewerSchema: a newer version of the program wrote it.
        DamagedDatabase: it is neither, or damaged.
        StorageError: it cannot be read.
    """
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
    found: Inspection | None = None, visits: Visits | None = None, *, is_foreign: bool = False
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
