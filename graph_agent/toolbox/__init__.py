"""Connects tools and policy to the graph: prepare a call without effects, run it, report the outcome."""

from graph_agent.toolbox.tool_context import ToolboxPorts
from graph_agent.toolbox.toolbox import MCP_PREFIX, GraphToolbox

__all__ = ["MCP_PREFIX", "GraphToolbox", "ToolboxPorts"]
