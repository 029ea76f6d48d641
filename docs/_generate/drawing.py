"""The drawings of the graph in the docs: what the command `graph` draws of it."""

from graph_agent.cli.draw.layout import lay_out
from graph_agent.cli.draw.mermaid import draw_mermaid
from graph_agent.cli.draw.svg import draw_svg
from graph_agent.cli.draw.text import draw_text
from graph_agent.cli.views.graph import whole_graph

__all__ = ["as_mermaid", "in_terminal", "picture"]


def picture() -> str:
    """The SVG file, as it should stand on disk."""
    return draw_svg(lay_out(whole_graph()), "The state machine of graph-agent")


def in_terminal() -> list[str]:
    """The drawing in characters, as a block of a page."""
    return ["```text", *draw_text(lay_out(whole_graph())), "```"]


def as_mermaid() -> list[str]:
    """The flow chart, as a block of a page."""
    return ["```mermaid", *draw_mermaid(whole_graph()), "```"]
