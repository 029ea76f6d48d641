from graph_agent.cli.draw.chart import chart_of
from graph_agent.cli.draw.layout import lay_out
from graph_agent.cli.draw.text import draw_text
from graph_agent.cli.views.table import text_width
from tests.graph_agent.cli.draw.charts import LOOP, walked

DRAWN = """
         ╭───────╮
         │ START │
         ╰───┬───╯
             │ input
         ╭───▼───╮
╭───────▶│ plan  ├─ answered ╮
│        ╰───┬───╯           │
│            │ called        │
│        ╭───▼───╮           │
╰ ended ─┤       │           │
╭ again ─┤  act  │           │
╰───────▶│       │           │
         ╰───────╯           │
         ╭───────╮           │
         │  END  │◀──────────╯
         ╰───────╯
"""
PLAIN = """
            +-----------+
            |   START   |
            +-----+-----+
                  | input x1
            +-----v-----+
+---------->|  plan x1  +- answered x0 +
|           +-----+-----+              |
|                 | called x12         |
|           +-----v-----+              |
+ ended x0 -+           |              |
+ again x0 -+ * act x12 |              |
+---------->|           |              |
            +-----------+              |
            +-----------+              |
            |    END    |<-------------+
            +-----------+
"""


def test_boxes_and_lines_join() -> None:
    assert draw_text(lay_out(LOOP)) == DRAWN.strip("\n").split("\n")


def test_ascii_says_the_same_without_any_other_character() -> None:
    assert draw_text(lay_out(walked("act")), is_ascii=True) == PLAIN.strip("\n").split("\n")


def test_the_live_node_has_a_heavy_border_and_its_name_is_painted() -> None:
    lines = draw_text(lay_out(walked("act")), paint=lambda text: f"<{text}>")

    assert [line.partition("┨")[2] for line in lines if "<" in line] == [" <● act ×12> ┃              │"]
    assert sum("┏" in line or "┗" in line for line in lines) == 2


def test_wide_characters_take_the_columns_they_take() -> None:
    lines = draw_text(lay_out(chart_of([("START", "开始", "计划"), ("计划", "完成", "END")], ("START", "END"))))

    framed = [line for line in lines if line[:1] in "╭│╰"]
    assert {text_width(line) for line in framed} == {text_width(framed[0])}
