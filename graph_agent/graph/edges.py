"""Where control goes: every edge of the state machine, in one table.

The compiled graph, docs/state-machine.md and one scenario test per row are derived from it. Nothing else decides
where control goes next.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

__all__ = [
    "DECIDING",
    "EDGES",
    "END",
    "NODES",
    "START",
    "TARGETS",
    "Edge",
    "EdgeOutcome",
    "TurnOutcome",
    "targets_of",
]

EdgeOutcome = Literal[
    "input",
    "called",
    "answered",
    "compacted",
    "shortened",
    "steered",
    "stopped",
    "limit",
    "marked",
    "asked",
    "settled",
    "ended",
    "observed",
    "completed",
]
"""What a node reports when it is done."""
TurnOutcome = Literal["", "done", "limit", "stopped"]
"""How a turn ended; empty while it runs."""

START = "START"
END = "END"

NODES = ("reasoning", "tool_routing", "human_approval", "tool_execution", "observation")

DECIDING = ("tool_routing", "observation")
"""Nodes that work on the state alone: they ask nobody and have no effects."""


class Edge(NamedTuple):
    """After `source` reports `outcome`, control goes to `target`."""

    source: str
    outcome: EdgeOutcome
    target: str
    reason: str


EDGES: tuple[Edge, ...] = (
    Edge(START, "input", "reasoning", "a turn begins with a model request"),
    Edge("reasoning", "called", "tool_routing", "the model asked for tool calls"),
    Edge("reasoning", "answered", END, "the model answered without calls: the turn is done"),
    Edge("reasoning", "compacted", "reasoning", "the conversation was compacted: the request is built again"),
    Edge("reasoning", "shortened", END, "the user asked for a compaction: no model request is sent"),
    Edge("reasoning", "steered", "reasoning", "a message of the user came in; it is stored before it is sent"),
    Edge("reasoning", "stopped", END, "the turn was stopped: no model request is sent"),
    Edge(
        "reasoning",
        "limit",
        END,
        "the next request would exceed a budget, or does not fit the model: it is not sent",
    ),
    Edge("tool_routing", "marked", "tool_execution", "one task for each call that is marked executing"),
    Edge("tool_routing", "asked", "human_approval", "calls await approval or a recovery decision"),
    Edge("tool_routing", "settled", "observation", "every call of the message is final"),
    Edge("human_approval", "answered", "tool_routing", "answers are written; routing decides what follows"),
    Edge("human_approval", "stopped", "tool_routing", "the turn was stopped: routing cancels what is open"),
    Edge("tool_execution", "ended", "tool_routing", "the batch has ended; some calls are still open"),
    Edge("tool_execution", "settled", "observation", "the last open call is final: nothing is left to route"),
    Edge("observation", "observed", "reasoning", "the model sees the results and continues"),
    Edge("observation", "completed", END, "the model declared its work complete"),
    Edge("observation", "limit", END, "the turn has used up its steps, or its calls failed too often in a row"),
    Edge("observation", "stopped", END, "the turn was stopped: its results are in the history"),
)

TARGETS: Mapping[tuple[str, str], str] = {(edge.source, edge.outcome): edge.target for edge in EDGES}
"""The node that runs next, by source and outcome; an outcome without a row is a bug in the node."""


def targets_of(source: str) -> tuple[str, ...]:
    """Every node that can follow `source`, in the table's order, without repeats."""
    return tuple(dict.fromkeys(edge.target for edge in EDGES if edge.source == source))
