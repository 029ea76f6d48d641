"""Presenting a plan, which ends plan mode if the user accepts it. The answer arrives with the call."""

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

__all__ = ["PresentPlanArgs", "PresentPlanTool"]

_EMPTY = "plan: it is empty; list the steps, each with the files that it changes or the command that it runs."
_NOBODY = "Nobody was asked: no user is present to decide on the plan. Give the plan as your answer instead."


class PresentPlanArgs(BaseModel):
    plan: str = Field(
        max_length=20_000,
        description="the steps in order, as Markdown, each with the files it changes or the command it runs",
    )


class PresentPlanTool(BaseTool):
    name = "present_plan"
    description = ToolDescription(
        short="Present your plan and wait for the user's decision.",
        long="If the user accepts the plan, plan mode ends and you carry it out; otherwise the"
        " answer says what to change.",
        usage_notes=("Explore what you need before you present it.",),
        examples=(ToolExample({"plan": "1. Add the field to the model\n2. Extend the tests"}),),
        important=("In plan mode you can only read.",),
    )
    tags = ("plan", "user")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = PresentPlanArgs
    requires_input = True
    only_in_plan_mode = True

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return None if str(args["plan"]).strip() else _EMPTY

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never, whatever it plans
        """Never: one plan is decided at a time."""
        return False

    def signature(self, args: Mapping[str, Any]) -> str:
        return str(args["plan"])

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"plan: {' '.join(str(args['plan']).split())}"

    async def execute(self, *, plan: str, context: ToolContext | None = None) -> ToolResult:
        """Return the decision in the context; without one, nobody could be asked."""
        if objection := self.validate({"plan": plan}):
            return failure(ToolErrorType.VALIDATION, objection)
        answer = self.context_or_default(context).answer
        if answer is None:
            return failure(ToolErrorType.EXECUTION, _NOBODY)
        return ToolResult(output=f"The user's decision on the plan: {answer}", display="decided")
