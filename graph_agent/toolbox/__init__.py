"""The tools on offer, judged by policy: the graph's port to both."""

from graph_agent.toolbox.box import GraphToolbox, ToolboxPorts

__all__ = ["GraphToolbox", "ToolboxPorts"]
