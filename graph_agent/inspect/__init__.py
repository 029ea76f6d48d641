"""Looking at threads without running them: reads the database file, never writes it, needs no model stack."""

from graph_agent.inspect.differences import Change, differences
from graph_agent.inspect.effective import Attempt, CallView, StandingAnswer, ThreadStatus
from graph_agent.inspect.history import HistoryEntry
from graph_agent.inspect.holder import Lease, is_alive
from graph_agent.inspect.ids import Kind, Target
from graph_agent.inspect.messages import are_messages, is_message, role_of
from graph_agent.inspect.reader import Inspection, Reader
from graph_agent.inspect.search import Hit
from graph_agent.inspect.state import CheckpointState, PendingWrite, Task
from graph_agent.inspect.statistics import ToolStatistics
from graph_agent.inspect.threads import ThreadSummary
from graph_agent.inspect.transcript import Recent, TranscriptEntry
from graph_agent.inspect.visits import END, START, Visits

__all__ = [
    "END",
    "START",
    "Attempt",
    "CallView",
    "Change",
    "CheckpointState",
    "HistoryEntry",
    "Hit",
    "Inspection",
    "Kind",
    "Lease",
    "PendingWrite",
    "Reader",
    "Recent",
    "StandingAnswer",
    "Target",
    "Task",
    "ThreadStatus",
    "ThreadSummary",
    "ToolStatistics",
    "TranscriptEntry",
    "Visits",
    "are_messages",
    "differences",
    "is_alive",
    "is_message",
    "role_of",
]
