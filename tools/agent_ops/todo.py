"""The plan of the work: written whole, read back. It lives in the thread's state; no file is touched."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from tools.base import (
    BaseTool,
    NoArguments,
    ToolContext,
    ToolErrorType,
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

    content: str = Field(min_length=1, max_length=500, description="what is to be done, in a few words")
    status: Literal["pending", "in_progress", "completed"] = Field(
        default="pending", description="at most one item of the plan is in_progress"
    )

    @field_validator("content")
    @classmethod
    def _on_one_line(cls, content: str) -> str:
        line = " ".join(content.split())
        if not line:
            raise ValueError("should say what is to be done")
        return line


class TodoWriteArgs(BaseModel):
    """The whole plan."""

    items: list[TodoItem] = Field(
        max_length=_MAX_ITEMS, description="every step in order, also those done; it replaces the plan so far"
    )


class TodoWriteTool(BaseTool):
    """See the module."""

    name = "todo_write"
    description = (
        "Write down the plan of the work as a checklist the user sees. Give the whole list each time. Use it for "
        "work of several steps: mark one step in_progress before you begin it, and completed as soon as it is done."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.WRITE
    category = "agent"
    in_plan_mode = True
    args_schema = TodoWriteArgs

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """One thing at a time."""
        return _objection(args["items"])

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - never any effect on the world
        """It changes nothing but the thread's own state: one that was broken off may simply be run again."""
        return True

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - the state takes one plan at a time
        """Never: of two plans the later one stands."""
        return False

    def display_call(self, args: Mapping[str, Any]) -> str:
        """How far the plan is."""
        return f"plan: {_progress(args['items'])}"

    async def execute(self, *, items: Sequence[TodoItem | Mapping[str, Any]]) -> ToolResult:
        """Hands the plan over as `metadata["todo"]`; whoever runs the tool keeps it with the thread."""
        plan = [TodoItem.model_validate(item).model_dump(mode="json") for item in items]
        if objection := _objection(plan):
            return failure(ToolErrorType.VALIDATION, objection)
        return _shown(plan, metadata={"todo": plan})


class TodoReadTool(BaseTool):
    """See the module."""

    name = "todo_read"
    description = "Read the plan of the work as it was last written with todo_write."
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = NoArguments

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - there are no arguments
        """One line."""
        return "read the plan"

    async def execute(self, *, context: ToolContext | None = None) -> ToolResult:
        """The plan that the context carries."""
        return _shown(self.context_or_default(context).todo, metadata={})


def _objection(items: Sequence[Mapping[str, Any]]) -> str | None:
    under_way = [item["content"] for item in items if item.get("status") == "in_progress"]
    if len(under_way) <= 1:
        return None
    named = " and ".join(repr(content) for content in under_way)
    return f"items: {named} are in_progress at once; leave one of them so and set the others to pending."


def _shown(items: Sequence[Mapping[str, Any]], *, metadata: dict[str, Any]) -> ToolResult:
    lines = [f"{_MARKS[item['status']]} {item['content']}" for item in items]
    return ToolResult("\n".join(lines) or "The plan is empty.", f"plan: {_progress(items)}", metadata=metadata)


def _progress(items: Sequence[Mapping[str, Any]]) -> str:
    done = sum(item.get("status") == "completed" for item in items)
    under_way = next((item["content"] for item in items if item.get("status") == "in_progress"), "")
    return f"{done} of {len(items)} done" + (f", now {under_way}" if under_way else "")
