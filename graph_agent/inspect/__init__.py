"""Reads threads without running them: never writes the database, and needs no model library."""

from graph_agent.inspect.calls import (
    CALL_WORDS,
    AttemptView,
    CallEnd,
    CallView,
    ThreadStatus,
    ToolStatistics,
    answer_words,
    call_end,
    call_name,
    describe_end,
    is_alive,
)
from graph_agent.inspect.history import END, START, HistoryEntry, Visits
from graph_agent.inspect.ids import Target
from graph_agent.inspect.reader import Inspection, Reader
from graph_agent.inspect.state import Change, CheckpointState, Task, diff_values
from graph_agent.inspect.threads import RecentMessages, SearchHit, ThreadSummary
from graph_agent.ports.checkpoint_values import are_messages, is_message, role_of
from graph_agent.ports.read_store import (
    Attempt,
    IdKind,
    Lease,
    RunningShell,
    StandingAnswer,
    StoredWrite,
    TranscriptEntry,
)

__all__ = [
    "CALL_WORDS",
    "END",
    "START",
    "Attempt",
    "AttemptView",
    "CallEnd",
    "CallView",
    "Change",
    "CheckpointState",
    "HistoryEntry",
    "IdKind",
    "Inspection",
    "Lease",
    "Reader",
    "RecentMessages",
    "RunningShell",
    "SearchHit",
    "StandingAnswer",
    "StoredWrite",
    "Target",
    "Task",
    "ThreadStatus",
    "ThreadSummary",
    "ToolStatistics",
    "TranscriptEntry",
    "Visits",
    "answer_words",
    "are_messages",
    "call_end",
    "call_name",
    "describe_end",
    "diff_values",
    "is_alive",
    "is_message",
    "role_of",
]
