"""Hooks for the kill sweep: they are asked around every call, and have no effect of their own."""

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Outcome, Scope

__all__ = ["REMARK", "Onlooker"]

REMARK = "[an onlooker saw it]"


class Onlooker:
    """Implements `graph_agent.ports.toolbox.Hooks`: objects to nothing, and says a word to each result."""

    def __init__(self, *, has_message_hooks: bool) -> None:
        self.has_message_hooks = has_message_hooks

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        """Nothing to say."""
        return ""

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        """Nothing to say."""
        return ""

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        """No objection."""
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        """The same word each time."""
        return REMARK

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """Nothing is wanted."""
