"""The protocols between the graph and the concrete parts that are wired in from outside.

Beside them what several of these parts must count or name alike: tokens, budgets, ids of sub-agents, processes.
"""

from graph_agent.ports.clock import Clock, SystemClock, clock_time
from graph_agent.ports.grants import Always, Grant, Grants, GrantScope
from graph_agent.ports.journal import Claim, Journal, JournalRow, RowStatus
from graph_agent.ports.model import ChatModel, Delta, ModelRequest, Models, OnDelta
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
from graph_agent.ports.toolbox import Finding, Intent, Outcome, Plan, Proposal, Scope, Toolbox
from graph_agent.ports.travel import (
    Done,
    FileImage,
    Restoration,
    Rewind,
    Rewinds,
    RewindScope,
    TakenAlong,
    WorkspaceFiles,
)
from graph_agent.ports.walls import Walls, no_walls

__all__ = [
    "Always",
    "Answer",
    "AnswerKind",
    "Barrier",
    "Blobs",
    "ChatModel",
    "Claim",
    "Clock",
    "Decisions",
    "Delta",
    "Done",
    "FileImage",
    "FileStates",
    "Finding",
    "Grant",
    "GrantScope",
    "Grants",
    "Holder",
    "Inbox",
    "Intent",
    "Journal",
    "JournalRow",
    "ModelRequest",
    "Models",
    "OnDelta",
    "Outcome",
    "Plan",
    "Proposal",
    "Question",
    "QuestionKind",
    "Restoration",
    "Rewind",
    "RewindScope",
    "Rewinds",
    "RowStatus",
    "Scope",
    "SystemClock",
    "TakenAlong",
    "ThreadLock",
    "Toolbox",
    "Walls",
    "WorkspaceFiles",
    "clock_time",
    "no_walls",
]
