"""Renders docs/state-machine.md from the edge table and the transition table."""

from collections.abc import Iterable

from docs._generate.markdown import mermaid, note, table
from graph_agent.app.reader import build_graph, format_mermaid
from graph_agent.calls import FINAL, INITIAL, OUTCOMES, STATUSES, TRANSITIONS
from graph_agent.graph.edges import EDGES

__all__ = ["page"]


def page() -> str:
    """Render the whole page."""
    return "\n".join(
        [
            note("graph_agent/graph/edges.py", "graph_agent/calls.py"),
            "# The state machine",
            "",
            "Each of the two tables is in one file. The compiled graph, the reducer of the call records, this page",
            "and the tests are derived from them.",
            "",
            "## Where control goes",
            "",
            "`graph-agent graph --format mermaid` prints this diagram. With a thread's ID, it also marks the",
            "current node and shows how often each node ran and each edge was taken.",
            "",
            "```mermaid",
            *format_mermaid(build_graph()),
            "```",
            "",
            *table(("after", "reports", "control goes to", "why"), [tuple(edge) for edge in EDGES]),
            "",
            "`tool_execution` runs once per call of a batch; its calls join in `tool_routing`.",
            "",
            "## The status of a call",
            "",
            *mermaid("stateDiagram-v2", _changes()),
            "",
            *table(("status", "role", "initial"), [_status_row(status) for status in STATUSES]),
            "",
            *table(("from", "to", "when"), [tuple(step) for step in TRANSITIONS]),
            "",
            "A cancelled call also has an `outcome`, which says what ended it. It follows from its `decision`:",
            "",
            *table(("decision", "outcome"), list(OUTCOMES.items())),
            "",
        ]
    )


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
