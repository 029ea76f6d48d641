"""`graph`: the nodes and edges of the state machine as a list, Mermaid or JSON, with the visits of a thread."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from graph_agent.app.reader import EDGES, END, START
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import open_reader
from graph_agent.cli.views.inspection import read_inspection
from graph_agent.cli.views.table import colorize, format_fields, format_table, print_result, print_text
from graph_agent.errors import UsageError
from graph_agent.inspect import Inspection, Visits

__all__ = ["GraphEdge", "GraphNode", "GraphView", "build_graph", "format_mermaid", "read_graph", "show_graph"]

Format = Literal["terminal", "mermaid"]

_FACTS = ("thread_id", "checkpoint_id", "status", "next", "since")
_PLAIN_ID = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset(("begin", "class", "default", "end", "graph", "style", "subgraph"))
_MERMAID_STYLES = (
    "classDef default fill:#f2f0ff,line-height:1.2",
    "classDef first fill-opacity:0",
    "classDef last fill:#bfb6fc",
    "classDef current fill:#fff8c5,stroke:#9a6700,stroke-width:3px,color:#1f2328",
)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node, or one of the two ends."""

    name: str
    is_end: bool = False
    visits: int | None = None
    """Number of supersteps in which the node ran; None without a thread."""
    is_current: bool = False
    """Whether this node runs next; END if the thread is idle."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """All outcomes that lead from one node to another."""

    source: str
    target: str
    outcomes: tuple[str, ...] = ()
    visits: int | None = None


@dataclass(frozen=True, slots=True)
class GraphView:
    """The graph, and where one thread is in it."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    facts: Mapping[str, Any] = field(default_factory=lambda: {**dict.fromkeys(_FACTS), "next": []})
    is_head: bool = True


def show_graph(
    database: Path | None,
    text: str,
    workspace: str | None,
    *,
    format_name: str | None = None,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the graph, with the thread that `text` names if a database is given.

    Raises:
        UsageError: the format is unknown, the options exclude each other, or the output cannot be written.
    """
    if as_json and (format_name or output):
        raise UsageError("--json cannot be combined with --format or --output.")
    if format_name not in (None, *get_args(Format)):
        raise UsageError(f"Unknown --format {format_name!r}. Choose one of: {', '.join(get_args(Format))}.")
    graph = build_graph() if database is None else read_graph(database, text, workspace)
    is_mermaid_file = output is not None and output.suffix.lower() in (".mmd", ".mermaid")
    is_mermaid = format_name == "mermaid" or (format_name is None and is_mermaid_file)
    lines = format_mermaid(graph) if is_mermaid else _format_list(graph)
    if output is None:
        nodes, edges = (list(map(asdict, many)) for many in (graph.nodes, graph.edges))
        print_result({**graph.facts, "nodes": nodes, "edges": edges}, lines, as_json=as_json)
        return
    try:
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write --output {str(output)!r}: {error.strerror}.") from error
    print_text(f"Wrote {output}.")


def read_graph(database: Path, text: str, workspace: str | None) -> GraphView:
    """The graph with the position and the visits of a thread at a checkpoint.

    Raises:
        UnknownId: no id matches, or the thread has no checkpoint.
    """
    with open_reader(database) as reader:
        found = read_inspection(reader, text, workspace)
        visits = reader.visits(found.state.thread_id, found.state.checkpoint_id)
        return build_graph(found, visits, is_foreign=reader.is_foreign)


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


def _format_list(graph: GraphView) -> Iterator[str]:
    facts, has_visits = graph.facts, graph.facts["thread_id"] is not None
    if has_visits:
        since = facts["since"]
        yield from format_fields(
            {
                "thread": facts["thread_id"],
                "checkpoint": f"{facts['checkpoint_id']}{'' if graph.is_head else ' (not the newest)'}",
                "status": facts["status"],
                "next": ", ".join(dict.fromkeys(facts["next"])) or "nothing",
                "visits": f"counted from checkpoint {since}; older ones were pruned" if since else "",
            }
        )
        yield ""
    yield colorize("nodes", "heading")
    for node in graph.nodes:
        count = f"  ×{node.visits}" if node.visits is not None else ""
        line = escape(f"{'> ' if node.is_current else '  '}{node.name}{count}")
        yield colorize(line, "running") if node.is_current else line
    yield ""
    visits = [(f"×{edge.visits}",) if has_visits else () for edge in graph.edges]
    rows = [
        (edge.source, edge.target, *count, " | ".join(edge.outcomes) or "-")
        for edge, count in zip(graph.edges, visits, strict=True)
    ]
    yield from format_table(("FROM", "TO", *(("VISITS",) if has_visits else ()), "OUTCOMES"), rows)
