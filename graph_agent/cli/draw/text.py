"""A drawing made of characters: lines and boxes of Unicode, or of plain ASCII where those cannot be shown."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from graph_agent.cli.draw.layout import Box, Layout, Line, Point
from graph_agent.cli.views.table import text_width

__all__ = ["draw_text"]

_UP, _RIGHT, _DOWN, _LEFT = 1, 2, 4, 8
_THIN = " ╵╶╰╷│╭├╴╯─┴╮┤┬┼"
_HEAVY = " ╹╺┗╻┃┏┠╸┛━┷┓┨┯┼"
_ASCII = " |-+||++-+-++++" + "+"
"""A character by the sum of the directions that lines leave its cell to."""
_ARROWS = {_DOWN: "▼", _LEFT: "◀", _RIGHT: "▶", _UP: "▲"}
_ASCII_ARROWS = {_DOWN: "v", _LEFT: "<", _RIGHT: ">", _UP: "^"}
_SPELLED = str.maketrans({"●": "*", "×": "x", "…": "~"})


def draw_text(layout: Layout, *, is_ascii: bool = False, paint: Callable[[str], str] = str) -> list[str]:
    """The lines of the drawing, without blanks at their ends; `paint` colours the names of live nodes."""
    return _Canvas(layout, paint, is_ascii=is_ascii).lines()


class _Canvas:
    def __init__(self, layout: Layout, paint: Callable[[str], str], *, is_ascii: bool) -> None:
        self._layout = layout
        self._is_ascii = is_ascii
        self._ways: dict[Point, int] = {}
        self._heavy: set[Point] = set()
        self._marks: dict[Point, str] = {}
        """Text that stands for itself, in its first cell; its others are empty."""
        for box in layout.boxes:
            self._frame(box)
        for line in layout.lines:
            self._trace(line)
        for box in layout.boxes:
            start = box.x + 1 + (box.width - 2 - text_width(box.text)) // 2
            self._write(Point(start, box.y + box.height // 2), box.text, paint if box.node.is_live else str)
        for label in layout.labels:
            self._write(Point(label.x - 1, label.y), f" {label.text} ")

    def lines(self) -> list[str]:
        return ["".join(self._row(y)).rstrip() for y in range(self._layout.height)]

    def _row(self, y: int) -> Iterator[str]:
        for x in range(self._layout.width):
            point = Point(x, y)
            mark = self._marks.get(point)
            yield self._glyph(point) if mark is None else mark

    def _glyph(self, point: Point) -> str:
        glyphs = _ASCII if self._is_ascii else _HEAVY if point in self._heavy else _THIN
        return glyphs[self._ways.get(point, 0)]

    def _frame(self, box: Box) -> None:
        right, bottom = box.x + box.width - 1, box.y + box.height - 1
        corners = (Point(box.x, box.y), Point(right, box.y), Point(right, bottom), Point(box.x, bottom))
        for start, end in pairwise((*corners, corners[0])):
            cells = self._walk(start, end)
            if box.node.is_live:
                self._heavy.update(cells)

    def _trace(self, line: Line) -> None:
        for start, end in pairwise(line.points):
            self._walk(start, end)
        *_, before, end = line.points
        direction = _towards(before, end)
        arrow = (_ASCII_ARROWS if self._is_ascii else _ARROWS)[direction]
        # From the side the point stands before the border; from above it stands on it, which saves a row.
        self._marks[_next(end, _opposite(direction)) if direction in (_LEFT, _RIGHT) else end] = arrow
        self._ways[end] = self._ways[end] & ~_opposite(direction)

    def _walk(self, start: Point, end: Point) -> list[Point]:
        direction, point, cells = _towards(start, end), start, [start]
        while point != end:
            self._ways[point] = self._ways.get(point, 0) | direction
            point = _next(point, direction)
            self._ways[point] = self._ways.get(point, 0) | _opposite(direction)
            cells.append(point)
        return cells

    def _write(self, start: Point, text: str, paint: Callable[[str], str] = str) -> None:
        said = text.translate(_SPELLED) if self._is_ascii else text
        for column in range(text_width(said)):
            self._marks[Point(start.x + column, start.y)] = ""
        self._marks[start] = paint(said)


def _towards(start: Point, end: Point) -> int:
    if start.x == end.x:
        return _DOWN if end.y > start.y else _UP
    return _RIGHT if end.x > start.x else _LEFT


def _next(point: Point, direction: int) -> Point:
    step = {_UP: (0, -1), _DOWN: (0, 1), _LEFT: (-1, 0), _RIGHT: (1, 0)}[direction]
    return Point(point.x + step[0], point.y + step[1])


def _opposite(direction: int) -> int:
    return {_UP: _DOWN, _DOWN: _UP, _LEFT: _RIGHT, _RIGHT: _LEFT}[direction]
