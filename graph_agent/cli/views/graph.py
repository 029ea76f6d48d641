"""`graph`: the nodes and edges of the state machine as a list, Mermaid or JSON, with the visits of a thread."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Literal, get_args

from graph_agent.app.reader import GraphView, build_graph, format_mermaid
from graph_agent.cli.views.format import open_reader
from graph_agent.cli.views.inspection import read_inspection
from graph_agent.cli.views.table import colorize, format_fields, format_table, print_result, print_text
from graph_agent.errors import UsageError
from graph_agent.wording import escape

__all__ = ["read_graph", "show_graph"]

Format = Literal["terminal", "mermaid"]


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
