from graph_agent.cli.draw.chart import ChartEdge, ChartNode, Walked, chart_of

WAYS = [("START", "input", "plan"), ("plan", "done", "END"), ("plan", "stopped", "END")]
ENDS = ("START", "END")


def test_outcomes_that_lead_to_the_same_node_are_one_edge() -> None:
    chart = chart_of(WAYS, ENDS)

    assert chart.nodes == (ChartNode("START", is_end=True), ChartNode("plan"), ChartNode("END", is_end=True))
    assert chart.edges == (ChartEdge("START", "plan", ("input",)), ChartEdge("plan", "END", ("done", "stopped")))


def test_what_was_walked_is_counted_and_ways_the_table_lacks_are_added() -> None:
    walked = Walked({"plan": 2, "rest": 1}, {("plan", "rest"): 1, ("START", "plan"): 2}, ("rest",))

    chart = chart_of(WAYS, ENDS, walked)

    assert [(node.name, node.visits, node.is_live) for node in chart.nodes] == [
        ("START", None, False),
        ("plan", 2, False),
        ("rest", 1, True),
        ("END", None, False),
    ]
    assert [edge.label for edge in chart.edges] == ["input ×2", "done/stopped ×0", "×1"]
