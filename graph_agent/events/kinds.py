"""The words that facts are told in, each with its closed list."""

from typing import Literal

__all__ = ["AnswerKind", "ProgressKind", "RestStatus", "ServerStage", "ShellEnd"]

AnswerKind = Literal["approve", "edit", "answer", "reject", "retry", "done", "cancel"]
"""approve, edit, reject settle an approval; answer, reject a question that the model asks; retry, done, cancel one
of recovery."""

ProgressKind = Literal["shell_output", "bytes_fetched", "files_searched", "mcp_progress", "sub_agent_step"]
"""What a running call tells of itself."""

RestStatus = Literal[
    "done",
    "awaiting_approval",
    "interrupted",
    "limit",
    "stopped",
    "broken_off",
    "model_error",
    "failed",
    "held",
]
"""awaiting_approval: only approvals are open. interrupted: at least one recovery question is open.
broken_off: the model request is all that is open (an earlier life ended there), or the run was suspended.
held: another process has the thread."""

ShellEnd = Literal["own", "flood", "session", "found", "unseen", "walls"]
"""Why a background shell runs no more."""

ServerStage = Literal["starting", "running", "restarting", "failed"]
"""How far a server of tools is."""
