"""Reads threads without running them: never writes the database, and needs no model library.

A module is loaded when one of its names is asked for, as in `graph_agent.ports`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # For a type checker every name would be there.
    _MODULES = {
        "history": ("END", "START", "HistoryEntry", "Visits"),
        "ids": ("Target",),
        "reader": ("Inspection", "Reader"),
        "state": ("Change", "CheckpointState", "Task", "diff_values"),
        "threads": ("RecentMessages", "SearchHit", "ThreadSummary"),
    }
    _PORTS = {
        "checkpoint_values": ("are_messages", "is_message", "role_of"),
        "read_store": (
            *("Attempt", "IdKind", "Lease", "RunningShell", "StandingAnswer", "StoredWrite", "TranscriptEntry"),
        ),
    }
    _HOMES = {
        **dict.fromkeys(__all__, f"{__name__}.calls"),
        **{name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
        **{name: f"graph_agent.ports.{module}" for module, names in _PORTS.items() for name in names},
    }

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
