"""The plan of the work, kept in the thread's state: one tool writes it, one reads it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from tools.base import (
    BaseTool,
    NoArguments,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)

__all__ = ["TodoItem", "TodoReadTool", "TodoWriteArgs", "TodoWriteTool"]

_MAX_ITEMS = 100
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoItem(BaseModel):
    """One step of the plan."""

    content: str = Field(min_length=1, max_length=500, description="what to do, in a few words")
    status: Literal["pending", "in_progress", "completed"] = Field(
        default="pending", description="at most one item of the plan is in_progress"
    )

    @field_validator("content")
    @classmethod
    def _on_one_line(cls, content: str) -> str:
        line = " ".join(content.split())
        if not line:
            raise ValueError("must not be empty")
        return line


class TodoWriteArgs(BaseModel):
    items: list[TodoItem] = Field(
        max_length=_MAX_ITEMS,
        description="every step in order, including completed ones; it replaces the previous plan",
    )


class TodoWriteTool(BaseTool):
    name = "todo_write"
    description = ToolDescription(
        short="Write the plan of the work as a checklist that the user sees.",
        long="Give the whole list each time.",
        usage_notes=("Use it for work of several steps.",),
        examples=(ToolExample({"items": [{"content": "Fix the parser", "status": "in_progress"}]}),),
        important=("Mark one step in_progress before you begin it, and completed as soon as it is done.",),
    )
    tags = ("plan", "write")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.WRITE
    category = "agent"
    in_plan_mode = True
    args_schema = TodoWriteArgs

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return _find_problem(args["items"])

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - it never has effects
        """Always: it changes only the thread's own state, so an interrupted call can simply run again."""
        return True

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - there is one plan
        """Never: the later of two plans counts."""
        return False

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"plan: {_progress(args['items'])}"

    async def execute(self, *, items: Sequence[TodoItem | Mapping[str, Any]]) -> ToolResult:
        """Return the plan as `metadata["todo"]`, which is stored with the thread."""
        plan = [TodoItem.model_validate(item).model_dump(mode="json") for item in items]
        if problem := _find_problem(plan):
            return failure(ToolErrorType.VALIDATION, problem)
        return _result(plan, metadata={"todo": plan})


class TodoReadTool(BaseTool):
    name = "todo_read"
    description = ToolDescription(
        short="Read the plan of the work.",
        long="It is the list as last written with todo_write.",
        usage_notes=("Use it where the plan is no longer in sight.",),
        examples=(ToolExample({}),),
        important=("It changes nothing; todo_write does.",),
    )
    tags = ("plan", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = NoArguments

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - there are no arguments
        return "read the plan"

    async def execute(self, *, context: ToolContext | None = None) -> ToolResult:
        return _result(self.context_or_default(context).todo, metadata={})


def _find_problem(items: Sequence[Mapping[str, Any]]) -> str | None:
    in_progress = [item["content"] for item in items if item.get("status") == "in_progress"]
    if len(in_progress) <= 1:
        return None
    named = " and ".join(repr(content) for content in in_progress)
    return f"items: {named} are in_progress at once; keep one of them and set the others to pending."


def _result(items: Sequence[Mapping[str, Any]], *, metadata: dict[str, Any]) -> ToolResult:
    lines = [f"{_MARKS[item['status']]} {item['content']}" for item in items]
    return ToolResult("\n".join(lines) or "The plan is empty.", f"plan: {_progress(items)}", metadata=metadata)


def _progress(items: Sequence[Mapping[str, Any]]) -> str:
    done = sum(item.get("status") == "completed" for item in items)
    current = next((item["content"] for item in items if item.get("status") == "in_progress"), "")
    return f"{done} of {len(items)} done" + (f", now {current}" if current else "")
