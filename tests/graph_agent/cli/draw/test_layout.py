import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.cli.draw.chart import Chart, ChartEdge, ChartNode, chart_of
from graph_agent.cli.draw.layout import Box, Layout, lay_out
from graph_agent.cli.views.table import text_width
from tests.graph_agent.cli.draw.charts import LOOP

NAMES = ("START", "a", "b", "c", "d", "END")
CHARTS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.text(max_size=12), st.sampled_from(NAMES)), min_size=1, max_size=14
).map(lambda ways: chart_of(ways, ("START", "END")))


def cells_of(box: Box) -> set[tuple[int, int]]:
    return {(x, y) for x in range(box.x, box.x + box.width) for y in range(box.y, box.y + box.height)}


def levels(layout: Layout) -> list[tuple[int, int]]:
    """Column and row of every upright piece of a lane."""
    return [
        (points[1].x, y)
        for points in (line.points for line in layout.lines)
        if len(points) == 4
        for y in range(min(points[1].y, points[2].y), max(points[1].y, points[2].y) + 1)
    ]


@given(CHARTS)
def test_nothing_overlaps_and_everything_lies_within(chart: Chart) -> None:
    layout = lay_out(chart)

    boxes = [cell for box in layout.boxes for cell in cells_of(box)]
    lanes = levels(layout)
    assert len(boxes) == len(set(boxes))
    assert len(lanes) == len(set(lanes))
    assert not set(lanes) & set(boxes)
    assert all(0 <= x < layout.width and 0 <= y < layout.height for x, y in [*boxes, *lanes])


@given(CHARTS)
def test_no_label_touches_a_line_upright_or_a_box(chart: Chart) -> None:
    layout = lay_out(chart)

    texts = {
        (x, label.y) for label in layout.labels for x in range(label.x - 1, label.x + text_width(label.text) + 1)
    }
    assert not texts & set(levels(layout))
    assert not texts & {cell for box in layout.boxes for cell in cells_of(box)}


def test_each_edge_is_one_line_from_border_to_border() -> None:
    layout = lay_out(LOOP)

    assert {line.edge for line in layout.lines} == set(LOOP.edges)
    borders = {cell for box in layout.boxes for cell in cells_of(box)}
    assert all({tuple(line.points[0]), tuple(line.points[-1])} <= borders for line in layout.lines)


@pytest.mark.parametrize("width", [80, 40, 30, 24])
def test_labels_and_then_names_are_shortened_until_it_fits(width: int) -> None:
    chart = chart_of(
        [
            ("START", "said at length", "a_name_of_some_length"),
            ("a_name_of_some_length", "said at length", "START"),
        ],
        ("START", "END"),
    )

    assert lay_out(chart, width).width <= width


def test_a_graph_without_edges_is_its_boxes() -> None:
    layout = lay_out(Chart((ChartNode("only"),), ()))

    assert (layout.lines, layout.labels, [box.text for box in layout.boxes]) == ((), (), ["only"])


def test_names_are_made_safe_to_print() -> None:
    chart = Chart((ChartNode("a\x1b[31m"), ChartNode("b")), (ChartEdge("a\x1b[31m", "b", ("x\n",)),))

    layout = lay_out(chart)

    assert ([box.text for box in layout.boxes], [label.text for label in layout.labels]) == (
        ["a\\x1b[31m", "b"],
        ["x\\n"],
    )
