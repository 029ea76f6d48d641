"""Reads threads without running them: never writes the database, and needs no model library."""

from graph_agent.inspect.calls import AttemptView, CallView, ThreadStatus, ToolStatistics, is_alive
from graph_agent.inspect.history import END, START, HistoryEntry, Visits
from graph_agent.inspect.ids import Target
from graph_agent.inspect.reader import Inspection, Reader
from graph_agent.inspect.search import SearchHit
from graph_agent.inspect.state import Change, CheckpointState, Task, diff_values
from graph_agent.inspect.threads import RecentMessages, ThreadSummary
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
    "END",
    "START",
    "Attempt",
    "AttemptView",
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
    "are_messages",
    "diff_values",
    "is_alive",
    "is_message",
    "role_of",
]
