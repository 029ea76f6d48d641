"""Declaring the work complete; the graph then ends the turn."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)

__all__ = ["AttemptCompletionArgs", "AttemptCompletionTool"]

_EMPTY = "result: it is empty; say what was done, what was not, and what failed."


class AttemptCompletionArgs(BaseModel):
    result: str = Field(description="the answer to the user: what was done, what was not, and what failed")


class AttemptCompletionTool(BaseTool):
    name = "attempt_completion"
    description = ToolDescription(
        short="End the work with a result for the user.",
        long="Answering without any call ends the work just as well.",
        usage_notes=("Give the result as the user should read it.",),
        examples=(ToolExample({"result": "The parser accepts empty files now; all tests pass."}),),
        important=("Call it alone, after all other calls have returned.",),
    )
    tags = ("user",)
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = AttemptCompletionArgs

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return None if str(args["result"]).strip() else _EMPTY

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never, whatever it says
        """Never: it runs after all other calls."""
        return False

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - the result is shown at the end
        return "complete the work"

    async def execute(self, *, result: str) -> ToolResult:
        """Return the result; `metadata["answer"]` marks it as the answer of the turn."""
        if not result.strip():
            return failure(ToolErrorType.VALIDATION, _EMPTY)
        return ToolResult(output=result, display="complete", metadata={"answer": result})
