"""Asking the user a question. The answer arrives with the call, and is returned as its result."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)

__all__ = ["AskUserArgs", "AskUserTool"]

_EMPTY = "question: it is empty; ask what you need to know, in one sentence."
_BLANK_OPTION = "options: one of them is empty; leave it out, or give it a text."
_NOBODY = "Nobody was asked: no user is here to answer. Decide yourself, and state in your answer what you assumed."


class AskUserArgs(BaseModel):
    question: str = Field(max_length=4_000, description="what you need to know, in one or two sentences")
    options: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="answers to choose from, if any; the user may always give another answer",
    )


class AskUserTool(BaseTool):
    name = "ask_user"
    description = ToolDescription(
        short="Ask the user a question and wait for the answer, however long that takes.",
        long="The user may choose an option or answer in their own words.",
        usage_notes=("Ask one thing at a time.",),
        examples=(ToolExample({"question": "Which database?", "options": ["SQLite", "PostgreSQL"]}),),
        important=("Use it only if the answer changes what you do and you cannot find it out yourself.",),
    )
    tags = ("user",)
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = AskUserArgs
    requires_input = True

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Require a question, and no empty option."""
        if not str(args["question"]).strip():
            return _EMPTY
        return None if all(option.strip() for option in args.get("options") or ()) else _BLANK_OPTION

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never, whatever it asks
        """Never: questions are asked one at a time."""
        return False

    def signature(self, args: Mapping[str, Any]) -> str:
        return str(args["question"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"asks: {' '.join(str(args['question']).split())}"

    async def execute(
        self,
        *,
        question: str,
        options: list[str] | None = None,
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Return the answer in the context; without one, nobody could be asked."""
        if objection := self.validate({"question": question, "options": options}):
            return failure(ToolErrorType.VALIDATION, objection)
        answer = self.context_or_default(context).answer
        if answer is None:
            return failure(ToolErrorType.EXECUTION, _NOBODY)
        return ToolResult(output=answer, display="answered")
