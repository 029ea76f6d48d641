"""The edge table of the graph, for drawing it without loading the graph."""

from graph_agent.graph.edges import EDGES, END, START

__all__ = ["EDGES", "END", "START"]
