"""Protocols and values shared by the graph, the model, storage, the toolbox and the session.

A module is loaded when one of its names is asked for: commands that only read need few of them, and start sooner.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph_agent.ports.model import ChatModel, Delta, ModelRequest, Models, OnDelta
    from graph_agent.ports.storage import (
        AlwaysRules,
        Answer,
        Barrier,
        Blobs,
        Claim,
        Clock,
        Decisions,
        FileStates,
        Grant,
        Grants,
        GrantScope,
        Holder,
        Inbox,
        Journal,
        JournalRow,
        Question,
        QuestionKind,
        RowStatus,
        SystemClock,
        TaskState,
        ThreadLock,
        normalize_time,
        rules_with_folders,
    )
    from graph_agent.ports.time_travel import (
        ExecutedAttempt,
        FileImage,
        FileRestoration,
        Rewind,
        Rewinds,
        RewindScope,
        SubAgentRewind,
        WorkspaceFiles,
    )
    from graph_agent.ports.toolbox import (
        Finding,
        GrantEffect,
        Intent,
        Outcome,
        PreparedCall,
        Proposal,
        ProposedRules,
        RuleChoice,
        SandboxInfo,
        Scope,
        Toolbox,
        no_sandbox_info,
    )

__all__ = [
    "AlwaysRules",
    "Answer",
    "Barrier",
    "Blobs",
    "ChatModel",
    "Claim",
    "Clock",
    "Decisions",
    "Delta",
    "ExecutedAttempt",
    "FileImage",
    "FileRestoration",
    "FileStates",
    "Finding",
    "Grant",
    "GrantEffect",
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
    "PreparedCall",
    "Proposal",
    "ProposedRules",
    "Question",
    "QuestionKind",
    "Rewind",
    "RewindScope",
    "Rewinds",
    "RowStatus",
    "RuleChoice",
    "SandboxInfo",
    "Scope",
    "SubAgentRewind",
    "SystemClock",
    "TaskState",
    "ThreadLock",
    "Toolbox",
    "WorkspaceFiles",
    "no_sandbox_info",
    "normalize_time",
    "rules_with_folders",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    _MODULES = ("model", "storage", "time_travel", "toolbox")

    def __getattr__(name: str) -> Any:
        if name in __all__:
            for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
