"""The graph's state: which channels there are and how writes to them are folded."""

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel

from graph_agent.calls import ToolCallInfo, merge_calls, merge_messages, merge_names

__all__ = ["AgentState", "CallTask", "ToolCallInfo", "merge_messages"]

SNAPSHOT_EVERY = 100
"""Updates of a delta channel between two full snapshots of it."""


class AgentState(TypedDict, total=False):
    """The channels. All but messages hold plain JSON values."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages, snapshot_frequency=SNAPSHOT_EVERY)]
    calls: Annotated[dict[str, ToolCallInfo], DeltaChannel(merge_calls, snapshot_frequency=SNAPSHOT_EVERY)]
    turn: dict[str, Any]
    """The turn under way: `steps` taken, their `usage`, `strikes` (see that module), `verdicts` of mode auto,
    `compactions` and `overflowed` since the last reply; once it ended, `outcome` (done, limit, stopped) and, of a
    limit, `why`, and `budget` where one is used up."""
    usage: dict[str, Any]
    """What the requests of the whole thread used; the shape is that of `ports.spending`."""
    mode: str
    cwd: str
    """Working directory of the shell; empty means the workspace."""
    todo: list[dict[str, Any]]
    """The plan of the work: `{content, status}` of each step."""
    loaded_tools: Annotated[list[str], merge_names]
    """Tools that the model searched for, in that order: they are declared from then on."""
    reported_shells: Annotated[list[str], merge_names]
    """Background shells whose end the model was told of unasked."""
    context: dict[str, Any]
    """Of the live window: `counted_from`, the newest message at its last compaction; `learned`, how many tokens
    which model takes, where it refused more."""


class CallTask(TypedDict):
    """What one task of tool_execution is given."""

    call: ToolCallInfo
    mode: str
    cwd: str
    todo: list[dict[str, Any]]
    """The plan where the call reads it, else empty: a task is stored with all it is given."""
    shown: list[dict[str, Any]]
    """See `Scope.shown`."""
    calls_in_message: int
    """How many calls the model's message has."""
    is_last: bool
    """Whether every other one of them is final."""
