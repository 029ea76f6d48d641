"""A drawing as a PNG picture, by Pillow, which is installed only where such pictures are wanted."""

from io import BytesIO
from typing import TYPE_CHECKING

from graph_agent.cli.draw.layout import Layout, Point
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
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont
    from PIL.ImageFont import ImageFont as BitmapFont

__all__ = ["draw_png"]

_ZOOM = 2
_PAPER, _INK, _LINE, _FILL = "#ffffff", "#1f2328", "#57606a", "#f6f8fa"
_LIVE_FILL, _LIVE_LINE, _PALE = "#fff8c5", "#9a6700", "#c4cad0"
_SPELLED = str.maketrans({"×": "x", "●": "", "…": "..."})
"""The font that comes with Pillow does not know these; the live node is told by its colour."""


def draw_png(layout: Layout) -> bytes:
    """The picture, in light colours and twice the size of the SVG, for sharp screens.

    Raises:
        UsageError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as missing:
        raise UsageError(
            "PNG pictures are drawn by Pillow, which is not installed here: install graph-agent with its extra "
            "`png`, as in `uv tool install '.[png]'`; or take --format svg, which needs nothing."
        ) from missing
    size = (
        _ZOOM * (layout.width * CELL_WIDTH + 2 * MARGIN),
        _ZOOM * (layout.height * CELL_HEIGHT + 2 * MARGIN),
    )
    picture = Image.new("RGB", size, _PAPER)
    _Sheet(ImageDraw.Draw(picture), ImageFont.load_default(14 * _ZOOM)).draw(layout)
    file = BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Sheet:
    def __init__(self, pen: "ImageDraw", font: "FreeTypeFont | BitmapFont") -> None:
        self._pen = pen
        self._font = font

    def draw(self, layout: Layout) -> None:
        for line in layout.lines:
            colour = _PALE if line.edge.visits == 0 else _LINE
            self._pen.line(list(map(_zoomed, bends_of(line))), fill=colour, width=3, joint="curve")
            self._pen.polygon(list(map(_zoomed, arrow_of(line))), fill=colour)
        for box in layout.boxes:
            left, top, width, height = (part * _ZOOM for part in frame_of(box))
            is_live = box.node.is_live
            self._pen.rounded_rectangle(
                (left, top, left + width, top + height),
                radius=height / 2 if box.node.is_end else 8 * _ZOOM,
                fill=_LIVE_FILL if is_live else _FILL,
                outline=_LIVE_LINE if is_live else _PALE if box.node.visits == 0 else _LINE,
                width=5 if is_live else 3,
            )
            self._write((left + width / 2, top + height / 2), box.text, "mm")
        for label in layout.labels:
            _, y = _zoomed(spot_of(Point(label.x, label.y)))
            self._write(((MARGIN + label.x * CELL_WIDTH) * _ZOOM, y), label.text, "lm", halo=6)

    def _write(self, spot: tuple[float, float], text: str, anchor: str, halo: int = 0) -> None:
        said = text.translate(_SPELLED)
        self._pen.text(spot, said, fill=_INK, font=self._font, anchor=anchor, stroke_width=halo, stroke_fill=_PAPER)


def _zoomed(spot: Spot) -> tuple[float, float]:
    return spot.x * _ZOOM, spot.y * _ZOOM
