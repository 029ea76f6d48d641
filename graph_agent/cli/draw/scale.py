"""From character cells to points on a plane, for drawings that are not made of characters."""

from typing import NamedTuple

from graph_agent.cli.draw.layout import Box, Line, Point

__all__ = ["CELL_HEIGHT", "CELL_WIDTH", "MARGIN", "Frame", "Spot", "arrow_of", "bends_of", "frame_of", "spot_of"]

CELL_WIDTH, CELL_HEIGHT, MARGIN = 9, 19, 12
_ARROW_LENGTH, _ARROW_HALF_WIDTH = 9, 5


class Spot(NamedTuple):
    """A place on the plane."""

    x: float
    y: float


class Frame(NamedTuple):
    """A box on the plane."""

    left: float
    top: float
    width: float
    height: float


def spot_of(point: Point) -> Spot:
    """The middle of a cell."""
    return Spot(MARGIN + (point.x + 0.5) * CELL_WIDTH, MARGIN + (point.y + 0.5) * CELL_HEIGHT)


def frame_of(box: Box) -> Frame:
    """The border of a box, which runs through the middle of its outer cells."""
    left, top = spot_of(Point(box.x, box.y))
    return Frame(left, top, (box.width - 1) * CELL_WIDTH, (box.height - 1) * CELL_HEIGHT)


def bends_of(line: Line) -> list[Spot]:
    """The corners of a line; it ends where its arrow begins."""
    *way, before, end = map(spot_of, line.points)
    return [*way, before, _short_of(before, end)]


def arrow_of(line: Line) -> tuple[Spot, Spot, Spot]:
    """The arrow at the end of a line: its tip, and the two corners behind it."""
    before, tip = map(spot_of, line.points[-2:])
    base = _short_of(before, tip)
    across = Spot(*(_ARROW_HALF_WIDTH * (a == b) for a, b in zip(base, tip, strict=True)))
    return tip, Spot(base.x + across.x, base.y + across.y), Spot(base.x - across.x, base.y - across.y)


def _short_of(before: Spot, end: Spot) -> Spot:
    back = (_ARROW_LENGTH * ((a > b) - (a < b)) for a, b in zip(before, end, strict=True))
    dx, dy = back
    return Spot(end.x + dx, end.y + dy)
