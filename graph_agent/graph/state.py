"""The graph's state: its channels, and how writes to them are merged."""

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, convert_to_messages
from langgraph.channels import DeltaChannel

from graph_agent.calls import ToolCallInfo, merge_calls, merge_messages, merge_names
from graph_agent.graph.edges import TurnOutcome

__all__ = [
    "AgentState",
    "CallTask",
    "ConsecutiveFailures",
    "ToolCallInfo",
    "TurnState",
    "merge_input",
    "merge_messages",
]

_ROLES = frozenset(("user", "human", "assistant", "ai", "system"))


def merge_input(messages: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """As `merge_messages`; takes LangGraph's short forms of messages too: `(role, text)`, dicts, a list of texts.

    Raises:
        DamagedDatabase: a write is something else.
    """
    for position, write in enumerate(writes):
        given = write if isinstance(write, list | tuple) and not _is_pair(write) else [write]
        if any(isinstance(one, str | dict) or _is_pair(one) for one in given):
            messages = merge_messages(messages, writes[:position])
            for one in given:
                messages = merge_messages(messages, [_typed(one, messages[-1].id if messages else None)])
            return merge_input(messages, writes[position + 1 :])
    return merge_messages(messages, writes)


def _is_pair(write: Any) -> bool:
    """Whether it is `(role, text)`, which is a list once it was stored."""
    is_list = isinstance(write, list | tuple) and len(write) == 2
    return is_list and all(isinstance(part, str) for part in write) and write[0] in _ROLES


def _typed(given: Any, previous: str | None) -> Any:
    """The message that a short form means; anything else as it is.

    Its id follows from what it is and from the one before it, so that every reading of the stored write gives the
    same.
    """
    if not isinstance(given, str | dict) and not _is_pair(given):
        return given
    with suppress(ValueError):
        [message] = convert_to_messages([tuple(given) if isinstance(given, list) else given])
        text = json.dumps([previous, message.type, message.content], ensure_ascii=False)
        message.id = message.id or f"input-{sha256(text.encode()).hexdigest()[:32]}"
        return message
    return given


SNAPSHOT_EVERY = 100
"""Updates of a delta channel between two full snapshots of it."""


class ConsecutiveFailures(TypedDict, total=False):
    """Repeated failures in one turn; see `limits`."""

    timeouts: dict[str, int]
    """By tool."""
    failures: dict[str, int]
    """By call: tool and arguments."""
    rejections: dict[str, int]
    """By call."""
    never_ran: dict[str, Any]
    """`{key, count}` of calls that were refused before they began, in a row and for one reason."""


class TurnState(TypedDict, total=False):
    """The current turn, or the last one."""

    steps: int
    """Model requests made."""
    sub_agent_requests: int
    """Model requests of sub-agents whose calls have ended."""
    usage: dict[str, Any]
    """What those requests used; the shape is that of `ports.usage`."""
    consecutive_failures: ConsecutiveFailures
    verdicts: dict[str, dict[str, Any]]
    """Verdicts of mode auto, by call."""
    compactions: int
    """How often the conversation was compacted since the last reply."""
    overflowed: bool
    """The model refused a request as too long since the last reply."""
    outcome: TurnOutcome
    reason: str
    """Why a limit ended the turn."""
    budget: str
    """The setting that was used up, where the limit is one of the budgets."""
    shared: bool
    """The budget is shared with other agents."""
    budget_reset: str
    """Token of the newest budget that the turn was given."""
    compact_only: dict[str, Any]
    """The turn that the thread had ended with, in a turn that is for a compaction alone."""


class AgentState(TypedDict, total=False):
    """The channels. All but messages hold plain JSON values."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_input, snapshot_frequency=SNAPSHOT_EVERY)]
    calls: Annotated[dict[str, ToolCallInfo], DeltaChannel(merge_calls, snapshot_frequency=SNAPSHOT_EVERY)]
    turn: TurnState
    usage: dict[str, Any]
    """What the requests of the whole thread used; the shape is that of `ports.usage`."""
    mode: str
    cwd: str
    """Working directory of the shell; empty means the workspace."""
    todo: list[dict[str, Any]]
    """The plan of the work: `{content, status}` of each step."""
    loaded_tools: Annotated[list[str], merge_names]
    """Tools that the model searched for, in that order: they are declared from then on."""
    reported_shells: Annotated[list[str], merge_names]
    """Background shells whose end was reported to the model in a notice."""
    context: dict[str, Any]
    """Of the context: `counted_from`, the newest message at its last compaction; `learned_limits`, how many tokens
    which model takes, where it refused more."""


class CallTask(TypedDict):
    """The input of one task of tool_execution."""

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
