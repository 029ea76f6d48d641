"""Renders docs/state-machine.md from the edge table and the transition table."""

from collections.abc import Iterable, Sequence

from graph_agent.calls import FINAL, INITIAL, STATUSES, TRANSITIONS
from graph_agent.graph.edges import EDGES, END, START

__all__ = ["page"]

_NOTE = "<!-- Written by `make docs` from graph_agent/graph/edges.py and graph_agent/calls/status.py. -->"


def page() -> str:
    """The whole page, as it should stand on disk."""
    return "\n".join(
        [
            _NOTE,
            "# The state machine",
            "",
            "Both tables live in one file each, and nothing else decides: the compiled graph, the reducer of the",
            "records, this page and the tests are derived from them.",
            "",
            "## Where control goes",
            "",
            *_mermaid("flowchart TD", _flow()),
            "",
            *_table(("after", "reports", "control goes to", "why"), [tuple(edge) for edge in EDGES]),
            "",
            "`tool_execution` runs once per call of a batch; its calls join in `tool_routing`.",
            "",
            "## What may become of a call",
            "",
            *_mermaid("stateDiagram-v2", _changes()),
            "",
            *_table(("status", "role", "may be created so"), [_status_row(status) for status in STATUSES]),
            "",
            *_table(("from", "to", "when"), [tuple(step) for step in TRANSITIONS]),
            "",
        ]
    )


def _flow() -> Iterable[str]:
    for edge in EDGES:
        yield f"{_node(edge.source)} -- {edge.outcome} --> {_node(edge.target)}"


def _node(name: str) -> str:
    return {START: "begin([START])", END: "finish([END])"}.get(name, name)


def _changes() -> Iterable[str]:
    for status in STATUSES:
        if status in INITIAL:
            yield f"[*] --> {status}"
    for step in TRANSITIONS:
        yield f"{step.source} --> {step.target}"
    for status in STATUSES:
        if status in FINAL:
            yield f"{status} --> [*]"


def _status_row(status: str) -> tuple[str, ...]:
    return status, "final: never run again" if status in FINAL else "open", "yes" if status in INITIAL else "no"


def _mermaid(kind: str, lines: Iterable[str]) -> list[str]:
    return ["```mermaid", kind, *(f"    {line}" for line in lines), "```"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
