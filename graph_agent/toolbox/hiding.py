"""Keeps the agent's own keys out of what a tool brought back, before it is kept or sent anywhere."""

from dataclasses import replace

from graph_agent.config.scrub import Scrub
from tools.base import ToolResult

__all__ = ["hidden"]


def hidden(result: ToolResult, scrub: Scrub) -> ToolResult:
    """The result without secrets, in every field."""
    return replace(
        result,
        output=scrub(result.output),
        display=scrub(result.display),
        error=None if result.error is None else scrub(result.error),
        metadata=scrub.value(result.metadata),
    )
