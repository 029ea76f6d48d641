"""Durable tool calls for any LangGraph graph.

No question is lost, and a call that may have run is not run again unless its policy or a person says so.

Three ways in, one journal: `DurableTools` in place of `ToolNode`, `DurableToolMiddleware` for `create_agent`,
and `durable` around a single tool. Nothing is loaded before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph_agent.durable.answers import answer
    from graph_agent.durable.failed_edges import retry_failed_edges
    from graph_agent.durable.guard import current_call
    from graph_agent.durable.journal import Journal
    from graph_agent.durable.middleware import DurableToolMiddleware
    from graph_agent.durable.tool_policy import (
        CallHeld,
        CallTakenOver,
        RunningCall,
        ToolPolicy,
        UnknownCall,
        UnknownOutcome,
    )
    from graph_agent.durable.tools import DurableTools, durable

__all__ = [
    "CallHeld",
    "CallTakenOver",
    "DurableToolMiddleware",
    "DurableTools",
    "Journal",
    "RunningCall",
    "ToolPolicy",
    "UnknownCall",
    "UnknownOutcome",
    "answer",
    "current_call",
    "durable",
    "retry_failed_edges",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    _MODULES = {
        "DurableToolMiddleware": "middleware",
        "DurableTools": "tools",
        "Journal": "journal",
        "answer": "answers",
        "current_call": "guard",
        "durable": "tools",
        "retry_failed_edges": "failed_edges",
    }

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'tool_policy')}"), name)
