"""`DurableToolMiddleware`: durable tool calls in an agent of LangChain's `create_agent`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graph_agent.durable.journal import Journal
from graph_agent.durable.tool_policy import OnUnknown, ToolPolicy
from graph_agent.durable.tools import RequestGuard

try:
    from langchain.agents.middleware import AgentMiddleware
except ImportError as error:
    raise ImportError(
        "DurableToolMiddleware is for agents of the package langchain, which is not installed. "
        "Install it with: pip install 'graph-agent[langchain]'"
    ) from error

__all__ = ["DurableToolMiddleware"]


class DurableToolMiddleware(AgentMiddleware[Any, Any, Any]):
    """Claims each tool call in a journal before it runs. Put it first, so that it sees what the model wrote."""

    def __init__(
        self,
        journal: Journal,
        *,
        on_unknown: OnUnknown | None = None,
        policies: Mapping[str, ToolPolicy] | None = None,
    ) -> None:
        """Create the middleware; see `DurableTools` for the arguments."""
        super().__init__()
        self._guard = RequestGuard(journal, policies or {}, ToolPolicy(on_unknown=on_unknown))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """The result of the call, recorded or new."""
        return self._guard.run(request, _messages(request.state), handler)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `wrap_tool_call`."""
        return await self._guard.arun(request, _messages(request.state), handler)


def _messages(state: Any) -> Any:
    return state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", ())
