"""Charts that several tests of the drawings draw."""

from graph_agent.cli.draw.chart import Chart, Walked, chart_of

__all__ = ["LOOP", "walked"]

_WAYS = [
    ("START", "input", "plan"),
    ("plan", "called", "act"),
    ("plan", "answered", "END"),
    ("act", "again", "act"),
    ("act", "ended", "plan"),
]
_ENDS = ("START", "END")

LOOP = chart_of(_WAYS, _ENDS)
"""One line of every kind: down, ahead, back, and to the node itself."""


def walked(live: str) -> Chart:
    """The same with counts, and a node that is live."""
    edges = {("START", "plan"): 1, ("plan", "act"): 12}
    return chart_of(_WAYS, _ENDS, Walked({"plan": 1, "act": 12}, edges, (live,)))
