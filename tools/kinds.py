"""The closed sets a tool declares itself with. Knows nothing of what tools do."""

from enum import StrEnum

__all__ = ["ToolErrorType", "ToolKind", "ToolRiskLevel"]


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
