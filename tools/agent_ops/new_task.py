"""Delegating a task to a sub-agent, which the port runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, Field

from tools.base import BaseTool, Preview, ToolContext, ToolErrorType, ToolKind, ToolResult, ToolRiskLevel, failure
from tools.registry import resolve_tool_name, unknown_tool_message

__all__ = ["NEW_TASK", "NewTaskArgs", "NewTaskTool", "SubAgentPort", "SubAgentTask"]

NEW_TASK = "new_task"
"""Name of the tool."""

_DAY_S = 86_400.0
_EMPTY = "prompt: it is empty; say what to do, and what the answer should contain."
_NO_SUB_AGENTS = "Sub-agents are not available here; do the work yourself."
_TITLE_CHARS = 80


@dataclass(frozen=True)
class SubAgentTask:
    """A task for a sub-agent, its tools and its limit."""

    description: str
    """In a few words, for the user."""
    prompt: str
    tools: tuple[str, ...] | None = None
    """Registered names; None: all tools of its parent."""
    max_steps: int | None = None
    """None: the same limit as its parent's turn."""


class SubAgentPort(Protocol):
    """Runs sub-agents."""

    def available_tools(self) -> Sequence[str]:
        """Names of the tools that a sub-agent may get."""
        ...

    async def run_task(self, task: SubAgentTask, context: ToolContext) -> ToolResult:
        """Run the sub-agent of this call to its end, continuing where it was interrupted.

        May raise what ends a run on purpose: the call is then continued later, as a new attempt.
        """
        ...


class NewTaskArgs(BaseModel):
    description: str = Field(default="", max_length=200, description="the task in three to ten words, for the user")
    prompt: str = Field(
        max_length=100_000,
        description="the whole task and what the answer should contain: a sub-agent does not see this conversation",
    )
    tools: list[str] | None = Field(
        default=None, max_length=200, description="names of the tools it gets; if left out, all your tools"
    )
    max_steps: int | None = Field(
        default=None, ge=1, le=10_000, description="how many requests it may make to the model"
    )


class NewTaskTool(BaseTool):
    name = NEW_TASK
    display_name = "task"
    description = (
        "Delegate a self-contained task to a sub-agent: it works in the same workspace, policy applies to its "
        "calls as to yours, and its last message is the result. Several in one message run in parallel: give them "
        "different files. Do not delegate what a call or two would do."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.EXECUTE
    category = "agent"
    args_schema = NewTaskArgs
    in_plan_mode = True
    resumable = True
    timeout_s = _DAY_S
    """Its steps are limited, and so is the time of each of its calls."""

    def __init__(self, *, workspace: Any = None, sub_agents: SubAgentPort | None = None) -> None:
        super().__init__(workspace=workspace)
        self._sub_agents = sub_agents

    def validate(self, args: Mapping[str, Any]) -> str | None:
        if not str(args["prompt"]).strip():
            return _EMPTY
        known = self._sub_agents.available_tools() if self._sub_agents else None
        for name in args.get("tools") or ():
            if known is not None and resolve_tool_name(name, known) is None:
                return f"tools: {unknown_tool_message(name, known)}"
        return None

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - always
        """Always: it is up to the model to give them different files."""
        return True

    def signature(self, args: Mapping[str, Any]) -> str:
        return _title(args)

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"task: {_title(args)}"

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:  # noqa: ARG002 - no context is needed
        """The task as the sub-agent gets it."""
        tools = "all tools" if args.get("tools") is None else ", ".join(map(str, args["tools"])) or "no tools"
        return Preview("text", f"{args['prompt']}\n\nwith {tools}\n")

    async def execute(
        self,
        *,
        prompt: str,
        description: str = "",
        tools: list[str] | None = None,
        max_steps: int | None = None,
        context: ToolContext | None = None,
    ) -> ToolResult:
        given = {"prompt": prompt, "description": description, "tools": tools}
        if problem := self.validate(given):
            return failure(ToolErrorType.VALIDATION, problem)
        if self._sub_agents is None:
            return failure(ToolErrorType.EXECUTION, _NO_SUB_AGENTS)
        known = self._sub_agents.available_tools()
        chosen = None if tools is None else dict.fromkeys(resolve_tool_name(name, known) or name for name in tools)
        task = SubAgentTask(_title(given), prompt, None if chosen is None else tuple(chosen), max_steps)
        return await self._sub_agents.run_task(task, self.context_or_default(context))


def _title(args: Mapping[str, Any]) -> str:
    """The description, or the beginning of the prompt, on one line."""
    line = " ".join(str(args.get("description") or args["prompt"]).split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"
