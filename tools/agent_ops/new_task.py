"""Giving a task to a sub-agent. Who that is, and where it keeps what it did, is the business of the port."""

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
_EMPTY = "prompt: it is empty; say what is to be done, and what the answer should hold."
_NOBODY = "There are no sub-agents here; do the work yourself."
_TITLE_CHARS = 80


@dataclass(frozen=True)
class SubAgentTask:
    """What a sub-agent is to do, and with what."""

    description: str
    """In a few words, for the user."""
    prompt: str
    tools: tuple[str, ...] | None = None
    """Registered names; None: all that its parent is offered."""
    max_steps: int | None = None
    """None: as many as its parent may take in a turn."""


class SubAgentPort(Protocol):
    """Where sub-agents come from."""

    def offer(self) -> Sequence[str]:
        """The tools that may be given to one."""
        ...

    async def work(self, errand: SubAgentTask, context: ToolContext) -> ToolResult:
        """Let the sub-agent of this very call do its errand, from where it stands, to its end.

        May raise what ends a run on purpose: then the call is gone on with later, as a new attempt.
        """
        ...


class NewTaskArgs(BaseModel):
    """A task to hand over."""

    description: str = Field(default="", max_length=200, description="the task in three to ten words, for the user")
    prompt: str = Field(
        max_length=100_000,
        description="the whole task and what the answer is to hold: a sub-agent sees nothing of this conversation",
    )
    tools: list[str] | None = Field(
        default=None, max_length=200, description="names of the tools it gets; left out, it gets all of yours"
    )
    max_steps: int | None = Field(
        default=None, ge=1, le=10_000, description="how many requests it may make to the model"
    )


class NewTaskTool(BaseTool):
    """See the module."""

    name = NEW_TASK
    display_name = "task"
    description = (
        "Hand a task that stands by itself to a sub-agent: it works alone in the same workspace, its calls are "
        "judged like yours, and its last message is the result. Several in one message work at the same time: "
        "give them different files. Do not hand over what a call or two would do."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.EXECUTE
    category = "agent"
    args_schema = NewTaskArgs
    in_plan_mode = True
    goes_on = True
    timeout_s = _DAY_S
    """Its steps are limited, and each of its calls in time."""

    def __init__(self, *, workspace: Any = None, sub_agents: SubAgentPort | None = None) -> None:
        super().__init__(workspace=workspace)
        self._sub_agents = sub_agents

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Something is to be done, with tools that there are."""
        if not str(args["prompt"]).strip():
            return _EMPTY
        return None if self._sub_agents is None else _objection(args.get("tools"), self._sub_agents.offer())

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - whatever it is given
        """Always: that two of them do not want the same file is up to who hands out the tasks."""
        return True

    def signature(self, args: Mapping[str, Any]) -> str:
        """The task in short."""
        return _title(args)

    def display_call(self, args: Mapping[str, Any]) -> str:
        """The task in short."""
        return f"task: {_title(args)}"

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:  # noqa: ARG002 - nothing is looked at
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
        """Waits until the sub-agent has done what it can."""
        given = {"prompt": prompt, "description": description, "tools": tools}
        if objection := self.validate(given):
            return failure(ToolErrorType.VALIDATION, objection)
        if self._sub_agents is None:
            return failure(ToolErrorType.EXECUTION, _NOBODY)
        known = self._sub_agents.offer()
        chosen = (
            None
            if tools is None
            else tuple(dict.fromkeys(resolve_tool_name(name, known) or name for name in tools))
        )
        errand = SubAgentTask(_title(given), prompt, chosen, max_steps)
        return await self._sub_agents.work(errand, self.context_or_default(context))


def _title(args: Mapping[str, Any]) -> str:
    """The description, or the beginning of the prompt, on one line."""
    line = " ".join(str(args.get("description") or args["prompt"]).split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def _objection(wanted: Sequence[str] | None, known: Sequence[str]) -> str | None:
    unknown = next((name for name in wanted or () if resolve_tool_name(name, known) is None), None)
    return None if unknown is None else f"tools: {unknown_tool_message(unknown, known)}"
