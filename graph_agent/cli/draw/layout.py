"""Where everything of a drawing stands, in character cells: boxes in one column, lines straight down or in lanes.

A line that leads further down runs in a lane on the right, one that leads back up in a lane on the left. Whatever
draws the picture takes the places from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graph_agent.cli.draw.chart import Chart, ChartEdge, ChartNode, counted
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import text_width, truncate

__all__ = ["Box", "Label", "Layout", "Line", "Point", "lay_out"]

_PITCH = 2
"""Columns from one lane to the next."""
_AROUND_LABEL = 4
"""Columns from a box to the next line upright that a label does not have to itself."""
_SHORTEST_LABEL = 3


class Point(NamedTuple):
    """A cell."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Box:
    """A node, its border included."""

    node: ChartNode
    text: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """An edge, from the border of one box to the border of another."""

    edge: ChartEdge
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """Text at a line, on it where the line is level."""

    text: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole drawing."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
    width: int
    height: int


class _Way(NamedTuple):
    """A line in a lane: from the row it leaves at to the row it arrives at."""

    edge: ChartEdge
    start: int
    end: int
    lane: int

    def is_at(self, row: int) -> bool:
        return min(self.start, self.end) <= row <= max(self.start, self.end)


class _Rows(NamedTuple):
    """The rows of each box: its top border, and how many stand inside."""

    tops: list[int]
    inner: list[int]


def lay_out(chart: Chart, width: int | None = None) -> Layout:
    """The places of everything; labels are shortened, and then names, until it is no wider than `width`."""
    longest = max((text_width(escape(edge.label)) for edge in chart.edges), default=0)
    layout = _attempt(chart, longest, None)
    for limit in range(longest - 1, _SHORTEST_LABEL - 1, -1):
        if width is None or layout.width <= width:
            return layout
        layout = _attempt(chart, limit, None)
    if width is not None and layout.width > width:
        room = max((box.width for box in layout.boxes), default=0) - (layout.width - width)
        layout = _attempt(chart, _SHORTEST_LABEL, max(room - 4, _SHORTEST_LABEL))
    return layout


def _attempt(chart: Chart, label_limit: int, name_limit: int | None) -> Layout:
    texts = [_text_of(node, name_limit) for node in chart.nodes]
    order = {node.name: number for number, node in enumerate(chart.nodes)}
    labels = {edge: _shortened(edge, label_limit) for edge in chart.edges}
    ahead = [edge for edge in chart.edges if order[edge.target] > order[edge.source] + 1]
    back = [edge for edge in chart.edges if order[edge.target] <= order[edge.source]]
    down = {edge.source: edge for edge in chart.edges if order[edge.target] == order[edge.source] + 1}
    left_ports, right_ports = _ports(back, order, is_back=True), _ports(ahead, order, is_back=False)
    rows = _rows(chart.nodes, down, left_ports, right_ports)
    left, right = _ways(left_ports, rows, order), _ways(right_ports, rows, order)
    box_width = max(map(text_width, texts), default=0) + 4
    left_room = _room(left, labels)
    middle = left_room + _PITCH * max((way.lane for way in left), default=0)
    below = max((text_width(labels[edge]) + 3 - box_width // 2 for edge in down.values()), default=0)
    right_room = max(_room(right, labels), below)
    boxes = tuple(
        Box(node, text, middle, rows.tops[number], box_width, rows.inner[number] + 2)
        for number, (node, text) in enumerate(zip(chart.nodes, texts, strict=True))
    )
    lines, shown = _drawn(boxes, (left, left_room), (right, right_room), (down, order), labels)
    beside = right_room + _PITCH * max((way.lane for way in right), default=0)
    height = max((box.y + box.height for box in boxes), default=0)
    return Layout(boxes, lines, shown, middle + box_width + beside, height)


def _text_of(node: ChartNode, limit: int | None) -> str:
    name = escape(node.name)
    name = name if limit is None else truncate(name, limit)
    return " ".join(filter(None, ("●" if node.is_live else "", name, counted(node.visits))))


def _shortened(edge: ChartEdge, limit: int) -> str:
    count = counted(edge.visits)
    said = escape("/".join(edge.outcomes))
    room = limit - (text_width(count) + 1 if count else 0)
    return " ".join(filter(None, (truncate(said, max(room, 0)), count)))


def _ports(
    edges: Sequence[ChartEdge], order: dict[str, int], *, is_back: bool
) -> dict[str, list[tuple[ChartEdge, bool]]]:
    """The lines at one side of each box from top to bottom, and whether each leaves there.

    In an order in which the lines of one box cross as little as can be.
    """
    ports: dict[str, list[tuple[ChartEdge, bool]]] = {}
    for name in order:
        leaving = sorted((e for e in edges if e.source == name), key=lambda e: (e.target == name, -order[e.target]))
        coming = sorted((e for e in edges if e.target == name), key=lambda e: -order[e.source])
        out, into = [(edge, True) for edge in leaving], [(edge, False) for edge in coming]
        ports[name] = [*out, *into] if is_back else [*into, *out]
    return ports


def _rows(
    nodes: Sequence[ChartNode],
    down: dict[str, ChartEdge],
    left: dict[str, list[tuple[ChartEdge, bool]]],
    right: dict[str, list[tuple[ChartEdge, bool]]],
) -> _Rows:
    tops, inner, top = [], [], 0
    for node in nodes:
        tops.append(top)
        inner.append(max(1, len(left[node.name]), len(right[node.name])))
        top += inner[-1] + 2 + (node.name in down)
    return _Rows(tops, inner)


def _ways(ports: dict[str, list[tuple[ChartEdge, bool]]], rows: _Rows, order: dict[str, int]) -> list[_Way]:
    """The lines of one side, each in the innermost lane that is free all along; short ones come first."""
    starts: dict[ChartEdge, int] = {}
    ends: dict[ChartEdge, int] = {}
    for name, at_box in ports.items():
        for number, (edge, leaves) in enumerate(at_box):
            (starts if leaves else ends)[edge] = rows.tops[order[name]] + 1 + number
    ways: list[_Way] = []
    for edge in sorted(starts, key=lambda e: abs(starts[e] - ends[e])):
        span = range(min(starts[edge], ends[edge]), max(starts[edge], ends[edge]) + 1)
        taken = {way.lane for way in ways if way.is_at(span[0]) or way.is_at(span[-1]) or way.start in span}
        lane = next(number for number in range(len(ways) + 1) if number not in taken)
        ways.append(_Way(edge, starts[edge], ends[edge], lane))
    return ways


def _room(ways: Sequence[_Way], labels: dict[ChartEdge, str]) -> int:
    """Columns between the boxes and the innermost lane, so that each label fits before the next line upright."""
    return max((_wanted(way, ways, labels) for way in ways), default=0)


def _wanted(way: _Way, ways: Sequence[_Way], labels: dict[ChartEdge, str]) -> int:
    free = min((o.lane for o in ways if o.lane < way.lane and o.is_at(way.start)), default=way.lane)
    return max(text_width(labels[way.edge]) + _AROUND_LABEL - _PITCH * free, 2)


def _drawn(
    boxes: Sequence[Box],
    left: tuple[list[_Way], int],
    right: tuple[list[_Way], int],
    straight: tuple[dict[str, ChartEdge], dict[str, int]],
    labels: dict[ChartEdge, str],
) -> tuple[tuple[Line, ...], tuple[Label, ...]]:
    lines: list[Line] = []
    texts: list[Label] = []
    edge_left, edge_right = (boxes[0].x, boxes[0].x + boxes[0].width - 1) if boxes else (0, 0)
    for way in left[0]:
        lines.append(_bent(way, edge_left, edge_left - left[1] - _PITCH * way.lane))
        texts.append(Label(labels[way.edge], edge_left - 1 - text_width(labels[way.edge]) - 1, way.start))
    for way in right[0]:
        lines.append(_bent(way, edge_right, edge_right + right[1] + _PITCH * way.lane))
        texts.append(Label(labels[way.edge], edge_right + 3, way.start))
    down, order = straight
    for name, edge in down.items():
        above, under = boxes[order[name]], boxes[order[edge.target]]
        x = above.x + above.width // 2
        lines.append(Line(edge, (Point(x, above.y + above.height - 1), Point(x, under.y))))
        texts.append(Label(labels[edge], x + 2, above.y + above.height))
    return tuple(lines), tuple(label for label in texts if label.text)


def _bent(way: _Way, border: int, lane: int) -> Line:
    return Line(
        way.edge, (Point(border, way.start), Point(lane, way.start), Point(lane, way.end), Point(border, way.end))
    )
