"""A drawing as a Mermaid flow chart, for pages that draw such text themselves."""

import re
from collections.abc import Iterator

from graph_agent.cli.draw.chart import Chart, ChartNode, counted
from graph_agent.cli.render.escape import escape

__all__ = ["draw_mermaid"]

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset(("begin", "class", "default", "end", "finish", "graph", "style", "subgraph"))
_HEAD = "flowchart TD"
_LIVE = "classDef live fill:#fff8c5,stroke:#9a6700,stroke-width:3px,color:#1f2328"


def draw_mermaid(chart: Chart) -> list[str]:
    """The lines of the chart."""
    return [_HEAD, *(f"    {line}" for line in _lines(chart))]


def _lines(chart: Chart) -> Iterator[str]:
    ids = {node.name: _id_of(number, node, chart) for number, node in enumerate(chart.nodes)}
    for node in chart.nodes:
        shape = _shape(node)
        if shape != ids[node.name]:
            yield f"{ids[node.name]}{shape}"
    for edge in chart.edges:
        label = _text(edge.label)
        arrow = f'-- "{label}" -->' if re.search(r"\W", label) else f"-- {label} -->" if label else "-->"
        yield f"{ids[edge.source]} {arrow} {ids[edge.target]}"
    live = [ids[node.name] for node in chart.nodes if node.is_live]
    if live:
        yield _LIVE
        yield f"class {','.join(live)} live"


def _id_of(number: int, node: ChartNode, chart: Chart) -> str:
    """The name itself where Mermaid takes it for one, else a number."""
    if node.is_end:
        return "begin" if node is chart.nodes[0] else "finish"
    return node.name if _PLAIN.fullmatch(node.name) and node.name not in _RESERVED else f"n{number}"


def _shape(node: ChartNode) -> str:
    text = _text(" ".join(filter(None, (node.name, counted(node.visits)))))
    if node.is_end:
        return f"([{text}])"
    return text if _PLAIN.fullmatch(text) and text not in _RESERVED else f'["{text}"]'


def _text(text: str) -> str:
    return escape(text).replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
