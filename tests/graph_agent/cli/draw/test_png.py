import sys
from io import BytesIO

import pytest
from PIL import Image

from graph_agent.cli.draw.layout import lay_out
from graph_agent.cli.draw.png import draw_png
from graph_agent.errors import UsageError
from tests.graph_agent.cli.draw.charts import LOOP, walked

LIVE = (255, 248, 197)


def colours_of(content: bytes) -> set[tuple[int, int, int]]:
    picture = Image.open(BytesIO(content)).convert("RGB")
    return {colour for _, colour in picture.getcolors(1 << 24) or []}  # type: ignore[misc] # of an RGB picture


def test_the_live_node_stands_out() -> None:
    assert [LIVE in colours_of(draw_png(lay_out(chart))) for chart in (LOOP, walked("act"))] == [False, True]


def test_without_pillow_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(UsageError, match=r"extra `png`.*--format svg"):
        draw_png(lay_out(LOOP))
