"""Asking the user something only they can know. The answer comes with the call; this tool hands it over."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import BaseTool, ToolContext, ToolErrorType, ToolKind, ToolResult, ToolRiskLevel, failure

__all__ = ["AskUserArgs", "AskUserTool"]

_EMPTY = "question: it is empty; ask what you need to know, in one sentence."
_BLANK_OPTION = "options: one of them is empty; leave it out, or say what it stands for."
_NOBODY = (
    "Nobody was asked: there is no user here who could answer. Decide yourself, and say in your answer what you "
    "have assumed."
)


class AskUserArgs(BaseModel):
    """One question."""

    question: str = Field(max_length=4_000, description="what you need to know, in one or two sentences")
    options: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="answers to choose from, where there are some; the user may always answer otherwise",
    )


class AskUserTool(BaseTool):
    """See the module."""

    name = "ask_user"
    description = (
        "Ask the user a question and wait for the answer, however long that takes. Use it only where the answer "
        "changes what you do and nothing you can look at tells it; ask one thing at a time."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = AskUserArgs
    requires_input = True

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Something has to be asked."""
        if not str(args["question"]).strip():
            return _EMPTY
        return None if all(option.strip() for option in args.get("options") or ()) else _BLANK_OPTION

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - nothing is gained by it
        """Never: the answer is there before the call runs."""
        return False

    def signature(self, args: Mapping[str, Any]) -> str:
        """The question."""
        return str(args["question"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        """The question on one line."""
        return f"asks: {' '.join(str(args['question']).split())}"

    async def execute(
        self,
        *,
        question: str,
        options: list[str] | None = None,
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Hands over the answer that the context carries; without one, nobody could be asked."""
        if objection := self.validate({"question": question, "options": options}):
            return failure(ToolErrorType.VALIDATION, objection)
        answer = self.context_or_default(context).answer
        if answer is None:
            return failure(ToolErrorType.EXECUTION, _NOBODY)
        return ToolResult(output=answer, display="answered")
