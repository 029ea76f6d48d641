from graph_agent.cli.draw.chart import ChartEdge, ChartNode
from graph_agent.cli.draw.layout import Box, Line, Point
from graph_agent.cli.draw.scale import CELL_HEIGHT, CELL_WIDTH, Frame, Spot, arrow_of, bends_of, frame_of, spot_of


def test_a_border_runs_through_the_middle_of_its_cells() -> None:
    box = Box(ChartNode("a"), "a", 2, 1, 5, 3)

    assert frame_of(box) == Frame(*spot_of(Point(2, 1)), 4 * CELL_WIDTH, 2 * CELL_HEIGHT)


def test_the_line_ends_where_its_arrow_begins() -> None:
    line = Line(ChartEdge("a", "b"), (Point(0, 0), Point(0, 3)))

    tip, left, right = arrow_of(line)

    assert tip == spot_of(Point(0, 3))
    assert bends_of(line)[-1] == Spot((left.x + right.x) / 2, left.y)
    assert left.y == right.y < tip.y


def test_an_arrow_from_the_side_lies_level() -> None:
    line = Line(ChartEdge("a", "b"), (Point(9, 0), Point(4, 0)))

    tip, above, below = arrow_of(line)

    assert (above.x, above.y + below.y) == (below.x, 2 * tip.y)
    assert above.x > tip.x
