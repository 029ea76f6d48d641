"""What the user wants done around calls and turns. Hooks run beside the journal: after a kill one may run again."""

from typing import Protocol

from graph_agent.calls import ToolCallInfo
from graph_agent.ports.toolbox import Outcome, Scope

__all__ = ["NO_HOOKS", "Hooks"]


class Hooks(Protocol):
    """The user's own commands; none of them is ever part of a call."""

    @property
    def reads_messages(self) -> bool:
        """Whether there are hooks for messages."""
        ...

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        """What the model is to be told with the next message; `source` is startup for a new thread, else resume."""
        ...

    async def prompted(self, thread_id: str, text: str, mode: str) -> str:
        """What the model is to be told behind this message, which is not sent yet; empty for nothing.

        Raises:
            MessageBlocked: it must not be sent.
        """
        ...

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        """Why the call must not run; empty where nothing objects. Done before the start of the call is recorded."""
        ...

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        """What the model is to be told behind the result, which stands already; empty for nothing."""
        ...

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """A turn of this thread came to its end."""
        ...


class _NoHooks:
    reads_messages = False

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:  # noqa: ARG002 - port
        return ""

    async def prompted(self, thread_id: str, text: str, mode: str) -> str:  # noqa: ARG002 - port
        return ""

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:  # noqa: ARG002 - port
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:  # noqa: ARG002 - port
        return ""

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """Nothing is wanted."""


NO_HOOKS: Hooks = _NoHooks()
"""Where the user wants nothing done."""
