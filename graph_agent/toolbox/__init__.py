"""Joins tools and policy for the graph: plan a call without effects, run it with them, say what became of it."""

from graph_agent.toolbox.box import MCP_PREFIX, GraphToolbox
from graph_agent.toolbox.world import ToolboxPorts

__all__ = ["MCP_PREFIX", "GraphToolbox", "ToolboxPorts"]
