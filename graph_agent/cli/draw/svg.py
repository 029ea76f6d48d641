"""A drawing as an SVG picture that loads nothing from elsewhere and follows the reader's light or dark scheme."""

from html import escape as quoted

from graph_agent.cli.draw.layout import Box, Label, Layout, Line, Point
from graph_agent.cli.draw.scale import (
    CELL_HEIGHT,
    CELL_WIDTH,
    MARGIN,
    Spot,
    arrow_of,
    bends_of,
    frame_of,
    spot_of,
)

__all__ = ["draw_svg"]

_STYLE = """\
svg { background: #ffffff; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
path { fill: none; stroke: #57606a; stroke-width: 1.5; }
polygon { fill: #57606a; }
rect { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5; }
.live rect { fill: #fff8c5; stroke: #9a6700; stroke-width: 2.5; }
.never { opacity: 0.45; }
text { fill: #1f2328; dominant-baseline: central; }
.node text { text-anchor: middle; }
.label { paint-order: stroke; stroke: #ffffff; stroke-width: 8px; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  path { stroke: #8b949e; }
  polygon { fill: #8b949e; }
  rect { fill: #161b22; stroke: #8b949e; }
  .live rect { fill: #3b2e00; stroke: #d29922; }
  text { fill: #e6edf3; }
  .label { stroke: #0d1117; }
}"""
_CORNER = 8
_ROUND = 8


def draw_svg(layout: Layout, title: str) -> str:
    """The picture, whole; `title` is what readers for the blind say."""
    width = layout.width * CELL_WIDTH + 2 * MARGIN
    height = layout.height * CELL_HEIGHT + 2 * MARGIN
    size = f'width="{width}" height="{height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">',
            f"<title>{quoted(title)}</title>",
            f"<style>\n{_STYLE}\n</style>",
            *map(_line, layout.lines),
            *map(_box, layout.boxes),
            *map(_label, layout.labels),
            "</svg>",
            "",
        )
    )


def _line(line: Line) -> str:
    corners = " ".join(f"{spot.x:g},{spot.y:g}" for spot in arrow_of(line))
    path = f'<path d="{_rounded(bends_of(line))}"/><polygon points="{corners}"/>'
    return f"<g{_worn(line.edge.visits)}>{path}</g>"


def _box(box: Box) -> str:
    left, top, width, height = frame_of(box)
    round_by = height / 2 if box.node.is_end else _ROUND
    kinds = " ".join(filter(None, ("node", "live" * box.node.is_live, "never" * (box.node.visits == 0))))
    frame = f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{round_by:g}"/>'
    text = f'<text x="{left + width / 2:g}" y="{top + height / 2:g}">{quoted(box.text)}</text>'
    return f'<g class="{kinds}">{frame}{text}</g>'


def _label(label: Label) -> str:
    _, y = spot_of(Point(label.x, label.y))
    return f'<text class="label" x="{MARGIN + label.x * CELL_WIDTH:g}" y="{y:g}">{quoted(label.text)}</text>'


def _worn(visits: int | None) -> str:
    return ' class="never"' if visits == 0 else ""


def _rounded(bends: list[Spot]) -> str:
    """A path along straight pieces with a small curve at each bend."""
    steps = [f"M{bends[0].x:g} {bends[0].y:g}"]
    for before, bend, after in zip(bends, bends[1:], bends[2:], strict=False):
        start, end = _near(bend, before), _near(bend, after)
        steps.append(f"L{start.x:g} {start.y:g}Q{bend.x:g} {bend.y:g} {end.x:g} {end.y:g}")
    return "".join([*steps, f"L{bends[-1].x:g} {bends[-1].y:g}"])


def _near(bend: Spot, other: Spot) -> Spot:
    """The point on the way from a bend to another where the curve begins."""
    far = max(abs(other.x - bend.x), abs(other.y - bend.y))
    part = min(_CORNER, far / 2) / far if far else 0
    return Spot(bend.x + (other.x - bend.x) * part, bend.y + (other.y - bend.y) * part)
