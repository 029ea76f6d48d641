"""Delegating a task to a sub-agent, which the port runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    Preview,
    ToolContext,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.registry import resolve_tool_name, unknown_tool_message

__all__ = ["NEW_TASK", "NamedAgent", "NewTaskArgs", "NewTaskTool", "SubAgentPort", "SubAgentTask"]

NEW_TASK = "new_task"
"""Name of the tool."""

_DAY_S = 86_400.0
_EMPTY = "prompt: it is empty; say what to do, and what the answer should contain."
_NO_SUB_AGENTS = "Sub-agents are not available here; do the work yourself."
_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class NamedAgent:
    """An agent from a file: instructions, and the tools, model and mode that go with them."""

    name: str
    description: str
    """What it is for, on one line."""
    prompt: str
    """Its instructions, added to the system prompt."""
    tools: tuple[str, ...] | None = None
    """Names of tools, as they were written or with `*`; None: all."""
    model: str = ""
    """Profile or model; empty for that of its parent, or of the settings."""
    mode: str = ""
    """Permission mode, used where it is stricter than that of its parent, or of the settings."""
    place: str = ""
    """The path of its file."""
    problem: str = ""
    """Why it cannot be used, as a sentence; empty if it can."""

    def allows(self, tool: str) -> bool:
        """Whether it may have a tool, by its registered name."""
        return self.tools is None or any(fnmatchcase(tool, one) for one in self.tools)


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
    agent: str = ""
    """Name of the agent that does it; empty for one like its parent."""


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
    agent: str = Field(
        default="", max_length=100, description="name of a defined agent that does it; if left out, one like you"
    )


class NewTaskTool(BaseTool):
    name = NEW_TASK
    display_name = "task"
    description: ToolDescription = ToolDescription(
        short="Delegate a self-contained task to a sub-agent.",
        long="It works in the same workspace, policy applies to its calls as to yours, and its"
        " last message is the result.",
        usage_notes=("Several tasks in one message run in parallel: give them different files.",),
        examples=(
            ToolExample(
                {"description": "find callers", "prompt": "List every caller of parse() with file and line."}
            ),
        ),
        important=("Do not delegate what a call or two would do.",),
    )
    tags = ("agents", "execute")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.EXECUTE
    category = "agent"
    args_schema = NewTaskArgs
    in_plan_mode = True
    resumable = True
    timeout_s = _DAY_S
    ends_in_time = True
    """Its steps are limited, and so is the time of each of its calls."""

    def __init__(
        self, *, workspace: Any = None, sub_agents: SubAgentPort | None = None, agents: Sequence[NamedAgent] = ()
    ) -> None:
        super().__init__(workspace=workspace)
        self._sub_agents = sub_agents
        self._agents = {agent.name: agent for agent in agents}
        if usable := [agent for agent in agents if not agent.problem]:
            listed = (f"- {agent.name}: {agent.description}".rstrip(": ") for agent in usable)
            whole = type(self).description
            self.description = replace(whole, long="\n".join([whole.long, "Agents:", *listed]))

    def validate(self, args: Mapping[str, Any]) -> str | None:
        if not str(args["prompt"]).strip():
            return _EMPTY
        if (name := str(args.get("agent") or "")) and (problem := self._problem_of(name)):
            return f"agent: {problem}"
        known = self._sub_agents.available_tools() if self._sub_agents else None
        for name in args.get("tools") or ():
            if known is not None and resolve_tool_name(name, known) is None:
                return f"tools: {unknown_tool_message(name, known)}"
        return None

    def _problem_of(self, name: str) -> str:
        """Why no agent of this name can be used; empty if it can."""
        if name not in self._agents:
            known = ", ".join(one.name for one in self._agents.values() if not one.problem) or "none"
            return f"there is no agent {name!r}. Defined: {known}."
        return self._agents[name].problem

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
        agent = f" as the agent {args['agent']}" if args.get("agent") else ""
        return Preview("text", f"{args['prompt']}\n\nwith {tools}{agent}\n")

    async def execute(
        self,
        *,
        prompt: str,
        description: str = "",
        tools: list[str] | None = None,
        max_steps: int | None = None,
        agent: str = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        given = {"prompt": prompt, "description": description, "tools": tools, "agent": agent}
        if problem := self.validate(given):
            return failure(ToolErrorType.VALIDATION, problem)
        if self._sub_agents is None:
            return failure(ToolErrorType.EXECUTION, _NO_SUB_AGENTS)
        known = self._sub_agents.available_tools()
        chosen = None if tools is None else dict.fromkeys(resolve_tool_name(name, known) or name for name in tools)
        task = SubAgentTask(_title(given), prompt, None if chosen is None else tuple(chosen), max_steps, agent)
        return await self._sub_agents.run_task(task, self.context_or_default(context))


def _title(args: Mapping[str, Any]) -> str:
    """The description, or the beginning of the prompt, on one line."""
    line = " ".join(str(args.get("description") or args["prompt"]).split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"
