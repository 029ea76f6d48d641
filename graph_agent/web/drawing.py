"""The graph as a picture: nodes one below the other, edges that skip or go back as arcs beside them.

The layout needs no measuring and fits any graph, also one of another program whose nodes are only known by name.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from graph_agent.app.reader import GraphEdge, GraphView

__all__ = ["Arc", "Box", "Drawing", "draw"]

_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _GAP, _TOP = 350, 180, 30, 26, 8
_LEFT = (_WIDTH - _BOX_WIDTH) // 2
_MAX_NAME = 20
_NEAREST, _STEP, _FARTHEST = 14, 13, 74
"""How far arcs lie beside the boxes: the nearest, the next ones, and the last that fits."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node."""

    name: str
    label: str
    x: int
    y: int
    width: int
    height: int
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Arc:
    """An edge."""

    path: str
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything a template needs to write the picture."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arcs: tuple[Arc, ...]
    summary: str
    """The picture in words."""


def draw(graph: GraphView) -> Drawing:
    """Place the nodes and edges."""
    rows = {node.name: row for row, node in enumerate(graph.nodes)}
    boxes = []
    for node in graph.nodes:
        count = f" ×{node.visits}" if node.visits else ""
        name = node.name if len(node.name) <= _MAX_NAME else f"{node.name[: _MAX_NAME - 1]}…"
        css = " ".join(filter(None, ("node", "end" if node.is_end else "", "current" if node.is_current else "")))
        state = ", runs next" if node.is_current and not node.is_end else ""
        visits = "" if node.visits is None else f", ran {node.visits} times"
        y = _TOP + rows[node.name] * (_BOX_HEIGHT + _GAP)
        boxes.append(
            Box(node.name, f"{name}{count}", _LEFT, y, _BOX_WIDTH, _BOX_HEIGHT, css, f"{node.name}{visits}{state}")
        )
    arcs = tuple(_arcs(graph.edges, rows))
    height = _TOP * 2 + len(graph.nodes) * (_BOX_HEIGHT + _GAP) - _GAP
    current = [node.name for node in graph.nodes if node.is_current]
    summary = f"Graph with {len(graph.nodes)} nodes; {'next is ' + ', '.join(current) if current else 'no thread'}"
    return Drawing(_WIDTH, height, tuple(boxes), arcs, summary)


def _arcs(edges: tuple[GraphEdge, ...], rows: dict[str, int]) -> Iterator[Arc]:
    """Edges to the next node as straight lines, others as arcs: forward on the right, back on the left."""
    beside = {True: 0, False: 0}
    for edge in sorted(edges, key=lambda one: abs(rows[one.target] - rows[one.source])):
        start, end = rows[edge.source], rows[edge.target]
        visits = f", taken {edge.visits} times" if edge.visits else ""
        outcomes = f": {' or '.join(edge.outcomes)}" if any(edge.outcomes) else ""
        title = f"{edge.source} to {edge.target}{outcomes}{visits}"
        css = "edge taken" if edge.visits else "edge"
        if end == start + 1:
            x, y = _WIDTH // 2, _middle(start) + _BOX_HEIGHT // 2
            yield Arc(f"M{x} {y} V{y + _GAP - 4}", css, title)
            continue
        is_forward = end > start
        reach = min(_NEAREST + _STEP * beside[is_forward], _FARTHEST)
        beside[is_forward] += 1
        x = _LEFT + _BOX_WIDTH if is_forward else _LEFT
        far = x + reach if is_forward else x - reach
        first, last = _middle(start) + 5, _middle(end) - 5
        tip = x + 4 if is_forward else x - 4
        yield Arc(
            f"M{x} {first} C{far} {first} {far} {first} {far} {(first + last) // 2} S{far} {last} {tip} {last}",
            css,
            title,
        )


def _middle(row: int) -> int:
    return _TOP + row * (_BOX_HEIGHT + _GAP) + _BOX_HEIGHT // 2
