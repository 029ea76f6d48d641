from xml.etree import ElementTree as ET

from graph_agent.cli.draw.chart import chart_of
from graph_agent.cli.draw.layout import lay_out
from graph_agent.cli.draw.svg import draw_svg
from tests.graph_agent.cli.draw.charts import LOOP, walked

SVG = "{http://www.w3.org/2000/svg}"


def test_each_box_line_and_label_is_there_and_nothing_is_loaded_from_elsewhere() -> None:
    picture = draw_svg(lay_out(LOOP), "A loop")

    root = ET.fromstring(picture)  # noqa: S314 - written by the line above
    counts = {kind: len(list(root.iter(f"{SVG}{kind}"))) for kind in ("rect", "path", "polygon", "text")}
    assert counts == {"rect": 4, "path": 5, "polygon": 5, "text": 9}
    assert root.findtext(f"{SVG}title") == "A loop"
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in picture


def test_the_live_node_and_what_nothing_came_by_are_told_apart() -> None:
    root = ET.fromstring(draw_svg(lay_out(walked("act")), "t"))  # noqa: S314 - our own

    kinds = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert (kinds.count("node live"), kinds.count("never")) == (1, 3)


def test_names_cannot_become_markup() -> None:
    picture = draw_svg(lay_out(chart_of([("START", "<&>", '<script>"')], ("START", "END"))), "<t>")

    root = ET.fromstring(picture)  # noqa: S314 - our own
    assert '<script>"' in [text.text for text in root.iter(f"{SVG}text")]
