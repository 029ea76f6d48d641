"""Connects tools and policy to the graph: prepare a call without effects, run it, report the outcome."""

from graph_agent.toolbox.tool_context import ToolboxDependencies
from graph_agent.toolbox.toolbox import MCP_PREFIX, GraphToolbox

__all__ = ["MCP_PREFIX", "GraphToolbox", "ToolboxDependencies"]
