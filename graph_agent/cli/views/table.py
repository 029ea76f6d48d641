"""Aligned columns of plain text. Cells are data: they are made safe here, and no markup in them is followed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import clipped, colored, coloring, line_width, text_width

__all__ = ["labelled", "short_ids", "table"]

_GAP = 2
_WHOLE = 20
_TAIL = 8
_LEAST_OF_PLACE = 10
_LEAST_OF_LAST = 24
_LEAST_TO_SAY = 8


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, place: str = "", leading: int = 2, indent: int = 0
) -> Iterator[str]:
    """Lines of a table; the last column is cut where the screen ends. A cell that is a status gets its colour.

    Of the column headed `place`, which holds paths, only the ends are shown where the last one needs the room. On a
    screen that is too narrow for both, the columns before the last one go, but for the `leading` ones. Who sets the
    lines in by some columns says so as `indent`.
    """
    cells = [list(headings), *([escape(cell) for cell in row] for row in rows)]
    width = line_width()
    room = None if width is None else width - indent
    if room is not None:
        cells = _without_lesser(cells, room, place, leading)
        headings = cells[0]
    widths = _widths(cells)
    if room is not None:
        left = room - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        if place in headings:
            number = headings.index(place)
            missing = max(min(_LEAST_OF_LAST, widths[-1]) - left, 0)
            given = min(missing, max(widths[number] - _LEAST_OF_PLACE, 0))
            widths[number] -= given
            left += given
        widths[-1] = max(left, 1)
    color = coloring()
    for number, row in enumerate(cells):
        *front, last = row
        parts = []
        for cell, width in zip(front, widths, strict=False):
            shown = _ended(cell, width)
            parts.append(color(shown, "heading" if number == 0 else shown) + " " * (width - text_width(shown)))
        parts.append(color(clipped(last, widths[-1]), "heading" if number == 0 else last))
        yield (" " * _GAP).join(parts).rstrip()


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(text_width, column)) for column in zip(*cells, strict=True)]


def _without_lesser(cells: list[list[str]], room: int, place: str, leading: int) -> list[list[str]]:
    """The cells without as many columns before the last as leave it no room; the leading ones stay."""
    widths = _widths(cells)
    if place in cells[0]:
        number = cells[0].index(place)
        widths[number] = min(widths[number], _LEAST_OF_PLACE)
    least = min(_LEAST_TO_SAY, widths[-1])
    while len(widths) > leading + 1 and room - sum(width + _GAP for width in widths[:-1]) < least:
        del widths[-2]
    kept = len(widths) - 1
    return [[*row[:kept], row[-1]] for row in cells]


def labelled(pairs: Mapping[str, str]) -> Iterator[str]:
    """One line per pair that has a value: label, then value, aligned."""
    shown = {label: value for label, value in pairs.items() if value}
    width = max(map(text_width, shown), default=0)
    for label, value in shown.items():
        yield f"{colored(label.ljust(width), 'heading')}{' ' * _GAP}{escape(value)}"


def short_ids(among: Iterable[str]) -> Callable[[str], str]:
    """Shortens a long id to its last characters, where they single it out of these; commands take them as an id."""
    ends = Counter(end for one in set(among) for end in {one[:_TAIL], one[-_TAIL:]})

    def short(identifier: str) -> str:
        tail = identifier[-_TAIL:]
        return identifier if len(identifier) <= _WHOLE or ends[tail] > 1 else tail

    return short


def _ended(cell: str, width: int) -> str:
    return cell if text_width(cell) <= width else clipped(cell[::-1], width)[::-1]
