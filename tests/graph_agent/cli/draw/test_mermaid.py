from graph_agent.cli.draw.chart import chart_of
from graph_agent.cli.draw.mermaid import draw_mermaid
from tests.graph_agent.cli.draw.charts import LOOP, walked


def test_plain_names_stand_for_themselves() -> None:
    assert draw_mermaid(LOOP) == [
        "flowchart TD",
        "    begin([START])",
        "    finish([END])",
        "    begin -- input --> plan",
        "    plan -- called --> act",
        "    plan -- answered --> finish",
        "    act -- again --> act",
        "    act -- ended --> plan",
    ]


def test_the_live_node_has_a_class_of_its_own() -> None:
    assert draw_mermaid(walked("act"))[-1] == "    class act live"


def test_names_that_mermaid_would_misread_are_quoted_under_a_number() -> None:
    chart = draw_mermaid(chart_of([("START", "", "end"), ("end", 'a "b"', "A b")], ("START", "END")))

    assert chart[1:] == [
        "    begin([START])",
        '    n1["end"]',
        '    n2["A b"]',
        "    finish([END])",
        "    begin --> n1",
        '    n1 -- "a #quot;b#quot;" --> n2',
    ]
