"""The values tools return, and the enumerations they declare themselves with."""

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from traceback import TracebackException
from typing import Any, Literal

__all__ = [
    "DiffResult",
    "FileEffect",
    "InterruptedCall",
    "Preview",
    "Reconciliation",
    "ToolErrorType",
    "ToolKind",
    "ToolResult",
    "ToolRiskLevel",
    "error_text",
    "failure",
    "report_bug",
]

_log = logging.getLogger(__name__)


class ToolRiskLevel(StrEnum):
    """LOW runs without approval, MEDIUM asks, HIGH asks with a highlighted warning."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ToolKind(StrEnum):
    """Whether a tool only reads, changes files, or executes something that may do anything."""

    READONLY = "readonly"
    WRITE = "write"
    EXECUTE = "execute"


class ToolErrorType(StrEnum):
    """Why a call failed, for the program; the error message tells the model what to do next."""

    VALIDATION = "validation"
    EXECUTION = "execution"
    PERMISSION = "permission"
    TIMEOUT = "timeout"
    NOT_FOUND = "not_found"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolResult:
    """The outcome of a call, in separate fields for the model, the user and the program."""

    output: str
    """For the model."""
    display: str = ""
    """One line for the user."""
    error: str | None = None
    """Any value except None means that the call failed; says what to do next."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """JSON values for rendering and for the program; never sent to the model."""


def failure(kind: ToolErrorType, error: str, *, output: str = "", **metadata: Any) -> ToolResult:
    """A failed result whose metadata carries the kind as `error_type`."""
    first_line = error.splitlines()[0] if error else str(kind)
    return ToolResult(output, display=first_line, error=error, metadata={"error_type": str(kind), **metadata})


def report_bug(tool_name: str, error: BaseException) -> ToolResult:
    """The result of a call in which the tool raised something; the traceback goes to the log."""
    _log.error("tool %s failed", tool_name, exc_info=error)
    message = f"{tool_name} failed with an internal error: {type(error).__name__}: {error_text(error)}."
    return failure(ToolErrorType.UNKNOWN, f"{message} Anything it did before that is not undone.")


_NO_TEXT = "<exception str() failed>"


def error_text(error: BaseException) -> str:
    """The error's message, if it can be had: building it is the tool's own code as well, and may fail."""
    text = str(TracebackException(type(error), error, None))
    return "it has no readable message" if text == _NO_TEXT else text


@dataclass(frozen=True)
class DiffResult:
    """The change of one file; `metadata["diff"]` holds it as a dictionary."""

    path: str
    before_sha256: str | None
    """None: the file did not exist."""
    after_sha256: str
    unified: str
    added: int
    removed: int


@dataclass(frozen=True)
class Preview:
    """What a call would do, shown before consent."""

    kind: Literal["diff", "text"]
    text: str
    observed: dict[str, Any] | None = None
    """Real path, device, inode and sha256 of the file the preview was computed from; the last three may be None."""


@dataclass(frozen=True)
class FileEffect:
    """The effect that a call will have on one file."""

    path: str
    before: bytes | None
    after_sha256: str
    before_mode: int | None = None
    """Permission bits of the file before; None if it does not exist."""
    new_folder: str | None = None
    """The outermost folder that the call will create for the file."""


@dataclass(frozen=True)
class InterruptedCall:
    """An interrupted call, with the effect that was predicted for it."""

    arguments: dict[str, Any]
    path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    """None: no effect was predicted."""


@dataclass(frozen=True)
class Reconciliation:
    """Whether an interrupted call took effect."""

    verdict: Literal["already_applied", "not_applied", "something_else", "unknown"]
    detail: str
