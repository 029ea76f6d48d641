"""Joins tools and policy for the graph: plan a call without effects, run it with them, say what became of it."""

from graph_agent.toolbox.tool_context import ToolboxPorts
from graph_agent.toolbox.toolbox import MCP_PREFIX, GraphToolbox

__all__ = ["MCP_PREFIX", "GraphToolbox", "ToolboxPorts"]
