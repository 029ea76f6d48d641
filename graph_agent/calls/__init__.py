"""Tool calls as durable records: their shape, their statuses, the one transition table, and how writes fold."""

from graph_agent.calls.answers import fitting_answers
from graph_agent.calls.digest import args_digest
from graph_agent.calls.folding import (
    DECIDED,
    REPLACES,
    SHORTENED,
    WANTS_WHOLE,
    in_place_of,
    merge_messages,
    merge_names,
)
from graph_agent.calls.mark import process_mark
from graph_agent.calls.record import (
    CallKind,
    Risk,
    ToolCallInfo,
    completed_tool_calls,
    pending_tool_calls,
)
from graph_agent.calls.reducer import NEW_MESSAGE, merge_calls
from graph_agent.calls.status import (
    FINAL,
    INITIAL,
    STATUSES,
    TRANSITIONS,
    CallStatus,
    Transition,
    is_allowed,
    require_allowed,
)

__all__ = [
    "DECIDED",
    "FINAL",
    "INITIAL",
    "NEW_MESSAGE",
    "REPLACES",
    "SHORTENED",
    "STATUSES",
    "TRANSITIONS",
    "WANTS_WHOLE",
    "CallKind",
    "CallStatus",
    "Risk",
    "ToolCallInfo",
    "Transition",
    "args_digest",
    "completed_tool_calls",
    "fitting_answers",
    "in_place_of",
    "is_allowed",
    "merge_calls",
    "merge_messages",
    "merge_names",
    "pending_tool_calls",
    "process_mark",
    "require_allowed",
]
