"""What tools give back, as values: results, failures, diffs, previews, foreseen effects and findings.

The closed sets a tool declares itself with. Knows nothing of what tools do.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
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
    "failure",
]


class ToolRiskLevel(StrEnum):
    """LOW runs by itself, MEDIUM asks, HIGH asks with a highlighted warning."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ToolKind(StrEnum):
    """What a tool does to the world: looks at it, changes files, or runs something that may do anything."""

    READONLY = "readonly"
    WRITE = "write"
    EXECUTE = "execute"


class ToolErrorType(StrEnum):
    """Why a call failed, for the program; the result's sentence tells the model what to do next."""

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
    """Goes to the model."""
    display: str = ""
    """One line for the user."""
    error: str | None = None
    """Not None means that the call failed; a sentence that says what to do next."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """JSON values for rendering and for the program; never part of the history."""


def failure(kind: ToolErrorType, error: str, *, output: str = "", **metadata: Any) -> ToolResult:
    """A failed result whose metadata carries the kind as `error_type`."""
    first_line = error.splitlines()[0] if error else str(kind)
    return ToolResult(output, display=first_line, error=error, metadata={"error_type": str(kind), **metadata})


@dataclass(frozen=True)
class DiffResult:
    """The change of one file."""

    path: str
    before_sha256: str | None
    """None: there was no file."""
    after_sha256: str
    unified: str
    added: int
    removed: int

    def as_json(self) -> dict[str, Any]:
        """The diff as JSON values, for `metadata["diff"]`."""
        return asdict(self)


@dataclass(frozen=True)
class Preview:
    """What a call would do, shown before consent."""

    kind: Literal["diff", "text"]
    text: str
    observed: dict[str, Any] | None = None
    """Real path, device, inode and sha256 of the file the preview was made from (None each where there is none)."""


@dataclass(frozen=True)
class FileEffect:
    """What a call is about to do to one file."""

    path: str
    before: bytes | None
    after_sha256: str
    before_mode: int | None = None
    """Permission bits of the file before; None where there is none."""
    new_folder: str | None = None
    """The outermost folder that the call will create for the file."""


@dataclass(frozen=True)
class InterruptedCall:
    """A call that was broken off, with what was foreseen for it."""

    arguments: dict[str, Any]
    path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    """None: nothing was foreseen."""


@dataclass(frozen=True)
class Reconciliation:
    """What a look at the world says about an interrupted call."""

    verdict: Literal["already_applied", "not_applied", "something_else", "unknown"]
    detail: str
