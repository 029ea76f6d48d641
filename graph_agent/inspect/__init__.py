"""Looking at threads without running them: reads the database file, never writes it, needs no model stack."""

from graph_agent.inspect.calls import Attempt, CallView, StandingAnswer, ThreadStatus
from graph_agent.inspect.checkpoint_values import are_messages, is_message, role_of
from graph_agent.inspect.connection import Lease, is_alive
from graph_agent.inspect.history import END, START, HistoryEntry, Visits
from graph_agent.inspect.ids import Kind, Target
from graph_agent.inspect.reader import Inspection, Reader
from graph_agent.inspect.search import SearchHit
from graph_agent.inspect.state import Change, CheckpointState, PendingWrite, Task, diff_values
from graph_agent.inspect.statistics import ToolStatistics
from graph_agent.inspect.threads import RecentMessages, ThreadSummary, TranscriptEntry

__all__ = [
    "END",
    "START",
    "Attempt",
    "CallView",
    "Change",
    "CheckpointState",
    "HistoryEntry",
    "Inspection",
    "Kind",
    "Lease",
    "PendingWrite",
    "Reader",
    "RecentMessages",
    "SearchHit",
    "StandingAnswer",
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
