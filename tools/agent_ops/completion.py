"""Declaring the work complete. That the turn then ends is the graph's doing, not this tool's."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import BaseTool, ToolErrorType, ToolKind, ToolResult, ToolRiskLevel, failure

__all__ = ["AttemptCompletionArgs", "AttemptCompletionTool"]

_EMPTY = "result: it is empty; say what was done, what was not, and what failed."


class AttemptCompletionArgs(BaseModel):
    """What came of the work."""

    result: str = Field(description="the answer to the user: what was done, what was not, and what failed")


class AttemptCompletionTool(BaseTool):
    """See the module."""

    name = "attempt_completion"
    description = (
        "End the work with a result for the user. Call it alone, after the results of all other calls are there; "
        "answering without any call ends the work just as well."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = AttemptCompletionArgs

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Something has to be said."""
        return None if str(args["result"]).strip() else _EMPTY

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never, whatever it says
        """Never: it comes after its neighbours."""
        return False

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - the result is shown when it ends
        """One line."""
        return "complete the work"

    async def execute(self, *, result: str) -> ToolResult:
        """Hands the result over as it is; `metadata["answer"]` marks it as the answer of the turn."""
        if not result.strip():
            return failure(ToolErrorType.VALIDATION, _EMPTY)
        return ToolResult(output=result, display="complete", metadata={"answer": result})
