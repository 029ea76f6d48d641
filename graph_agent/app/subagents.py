"""Open sub-agents: threads of their own that share their parent's model, database, servers and rights."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph_agent.app.instructions import with_role
from graph_agent.app.named_agents import NO_AGENT, agent_from_json, agent_to_json, load_agents
from graph_agent.app.toolset import ToolSource
from graph_agent.config.settings import Settings
from graph_agent.config.sources import stricter_mode
from graph_agent.errors import UsageError
from graph_agent.events import EventBus
from graph_agent.ports import Journal
from graph_agent.ports.usage import UNLIMITED
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.session import Session
from graph_agent.session.subagents import SubAgentRequest, SubAgents, SubAgentTask, TaskCall
from graph_agent.session.time_travel import last_reverted_attempt
from graph_agent.storage.sqlite.threads import ThreadTable
from tools.agent_ops.new_task import NEW_TASK, NamedAgent, NewTaskTool
from tools.agent_ops.new_task import SubAgentTask as ToolTask
from tools.base import SubAgentStep, ToolContext, ToolErrorType, ToolResult, failure
from tools.registry import ToolRegistry, select_tools

__all__ = ["LocalSubAgentHost", "SubAgentTools", "create_sub_agents", "remove_new_task"]

Join = Callable[[Thread, EventBus, "SubAgentTools"], Awaitable[SessionDependencies]]
"""Makes the dependencies of a sub-agent's session, from its thread, bus and tools."""


@dataclass(frozen=True, slots=True)
class SubAgentTools:
    """The tools of one sub-agent. They end with those of its parent."""

    registry: ToolRegistry
    of_parent: ToolSource

    async def settled(self) -> None:
        """See `ToolSource`: its servers are those of its parent."""
        await self.of_parent.settled()

    def explain_missing(self, written: str) -> str:
        """See `ToolSource`."""
        return self.of_parent.explain_missing(written)

    async def close(self) -> None:
        """Nothing is its own."""


@dataclass(frozen=True, slots=True)
class LocalSubAgentHost:
    """Implements `SubAgentHost` for one parent."""

    thread: Thread
    threads: ThreadTable
    journal: Journal
    servers: ToolSource
    join: Join
    agents: Mapping[str, NamedAgent] = field(default_factory=dict)
    """The defined agents, by name."""

    async def last_reverted(self, thread_id: str, call_id: str) -> int:
        """See the protocol."""
        return await last_reverted_attempt(self.journal, thread_id, call_id)

    async def has(self, thread_id: str) -> bool:
        """See the protocol."""
        return await self.threads.get(thread_id) is not None

    async def may_have_started_elsewhere(self, thread_id: str, call_id: str) -> bool:
        """See the protocol."""
        return await self.threads.may_have_started_elsewhere(thread_id, call_id)

    async def open(self, request: SubAgentRequest) -> Session:
        """See the protocol."""
        parent, task = self.thread, request.task
        defined = self._defined(task.agent)
        row = await self.threads.create_child(
            request.parent_thread, request.call_id, request.thread_id, task.description, agent_to_json(defined)
        )
        # As it was when the sub-agent started: later changes of its file apply to new ones.
        agent = agent_from_json(row.agent)
        child = replace(
            parent,
            thread_id=request.thread_id,
            mode=stricter_mode(agent.mode, request.mode),
            max_steps=min(task.max_steps or parent.max_steps, parent.max_steps),
            from_checkpoint=None,
            depth=parent.depth + 1,
            budget=UNLIMITED,
            shared_budget=request.shared_budget,
            role=agent.prompt or parent.role,
            model=agent.model,
        )
        registry = self.servers.registry
        wanted = registry.names() if task.tools is None else task.tools
        allowed = frozenset(name for name in wanted if agent.allows(name))
        tools = SubAgentTools(select_tools(registry, allowed), self.servers)
        dependencies = await self.join(child, request.bus, tools)
        if request.system_prompt:
            prompt = with_role(request.system_prompt, child.role)
            dependencies = replace(dependencies, instructions=lambda: prompt)
        return await Session.open(child, dependencies)

    def _defined(self, name: str) -> NamedAgent:
        """The agent of this name.

        Raises:
            UsageError: there is none, or it cannot be used.
        """
        if name and (name not in self.agents or self.agents[name].problem):
            raise UsageError(f"The agent {name!r} of this call is no longer defined, or cannot be used.")
        return self.agents[name] if name else NO_AGENT


@dataclass(frozen=True, slots=True)
class _TaskRunner:
    """Implements `SubAgentPort` of the tool with a session's sub-agents."""

    sub_agents: SubAgents

    def available_tools(self) -> Sequence[str]:
        """See `SubAgentPort`."""
        return self.sub_agents.offer()

    async def run_task(self, task: ToolTask, context: ToolContext) -> ToolResult:
        """See `SubAgentPort`."""

        def report_step(step: int, text: str) -> None:
            context.progress(SubAgentStep(step, text))

        session_task = SubAgentTask(task.description, task.prompt, task.tools, task.max_steps, task.agent)
        report = await self.sub_agents.work(session_task, TaskCall(context.thread_id, context.call_id, report_step))
        if report.error:
            kind = ToolErrorType.CANCELLED if report.was_stopped else ToolErrorType.EXECUTION
            return failure(kind, report.error, output=report.output, **report.metadata)
        return ToolResult(report.output, f"task: {task.description}", metadata=report.metadata)


def create_sub_agents(host: LocalSubAgentHost, settings: Settings) -> SubAgents:
    """The sub-agents of a thread; `new_task` is registered for them if the thread may have some."""
    registry = host.servers.registry
    agents = load_agents(settings, os.environ, registry.names())
    sub_agents = SubAgents(replace(host, agents=agents))
    if remove_new_task(registry) and host.thread.depth < settings.max_task_depth:
        runner, workspace = _TaskRunner(sub_agents), host.thread.workspace
        registry.register(NewTaskTool(workspace=workspace, sub_agents=runner, agents=tuple(agents.values())))
    return sub_agents


def remove_new_task(registry: ToolRegistry) -> bool:
    """Unregister the built-in `new_task`; False if there is none, or it is the user's own tool, which stays."""
    return registry.origin(NEW_TASK) == "builtin" and registry.unregister(NEW_TASK)
