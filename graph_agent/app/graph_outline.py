"""The table of edges that the graph is built from, for whoever draws it. Nothing of the graph itself is loaded."""

from graph_agent.graph.edges import EDGES, END, START

__all__ = ["EDGES", "END", "START"]
