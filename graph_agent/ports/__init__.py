"""The protocols between the graph and the concrete parts that are wired in from outside."""

from graph_agent.ports.clock import Clock, SystemClock
from graph_agent.ports.journal import Claim, Journal, JournalRow, RowStatus
from graph_agent.ports.model import ChatModel, Delta, ModelRequest, OnDelta
from graph_agent.ports.storage import (
    Answer,
    AnswerKind,
    Barrier,
    Blobs,
    Decisions,
    FileStates,
    Holder,
    Inbox,
    Question,
    QuestionKind,
    ThreadLock,
)
from graph_agent.ports.toolbox import Finding, Intent, Outcome, Plan, Scope, Toolbox

__all__ = [
    "Answer",
    "AnswerKind",
    "Barrier",
    "Blobs",
    "ChatModel",
    "Claim",
    "Clock",
    "Decisions",
    "Delta",
    "FileStates",
    "Finding",
    "Holder",
    "Inbox",
    "Intent",
    "Journal",
    "JournalRow",
    "ModelRequest",
    "OnDelta",
    "Outcome",
    "Plan",
    "Question",
    "QuestionKind",
    "RowStatus",
    "Scope",
    "SystemClock",
    "ThreadLock",
    "Toolbox",
]
