"""A terminal coding agent whose every tool call is a durable record."""

import os
from typing import Any

__all__ = ["open_session"]

# The graph framework reads this once, when it is first imported; without it a crafted checkpoint runs code.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"


def __getattr__(name: str) -> Any:
    """Offer `open_session` without loading the graph for those who only read."""
    if name == "open_session":
        from graph_agent.app.opening import open_session  # noqa: PLC0415 - the point of this function

        return open_session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
