"""The session of a thread, from its concrete parts: what of opening it needs the graph and the model library.

The composition root: the only place that joins the concrete parts on one database. Below that are the sub-agents:
threads of their own that share their parent's model, database, servers and rights.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from graph_agent.app.instructions import prompt_now, with_role
from graph_agent.app.mcp_servers import SessionServers
from graph_agent.app.models import (
    OpenedModel,
    ThreadModels,
    budget_of,
    meter_of,
    open_model,
    require_price,
    store_model_choice,
)
from graph_agent.app.named_agents import (
    NO_AGENT,
    agent_from_json,
    agent_to_json,
    load_agents,
    register_new_task,
)
from graph_agent.app.thread_start import OpenRequest, StartedThread, create_row, reject_sub_agent
from graph_agent.app.toolset import (
    ToolSource,
    ToolStorage,
    WorkFolders,
    attach_shells,
    default_registry,
    early_reads_of,
    open_toolbox,
    requested_roots,
    roots_of,
    sandbox_of,
    sandbox_status,
)
from graph_agent.app.tracing import trace_turns
from graph_agent.config.model_choice import choose_model
from graph_agent.config.paths import pasted_dir
from graph_agent.config.redaction import redactor
from graph_agent.config.settings import HookSettings, Settings
from graph_agent.config.sources import stricter_mode, with_model
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, WarningIssued
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.edges import DECIDING
from graph_agent.model.openai.context_windows import ModelWindows
from graph_agent.ports import Journal
from graph_agent.ports.toolbox import NO_HOOKS, NO_MENTION_EXPANSION
from graph_agent.ports.usage import UNLIMITED
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.session import Session
from graph_agent.session.subagents import SubAgentRequest, SubAgents, SubAgentTask, TaskCall
from graph_agent.session.thread_graph import ThreadGraph
from graph_agent.session.time_travel import last_reverted_attempt
from graph_agent.storage import thread_lock
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteShells
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox, Store, ThreadRow, ThreadTable
from graph_agent.toolbox.background_shells import Shells
from graph_agent.toolbox.hooks import CommandHooks
from graph_agent.toolbox.workspace_files import FileMentions, RestorableFiles
from tools.agent_ops.new_task import NamedAgent
from tools.agent_ops.new_task import SubAgentTask as ToolTask
from tools.base import SubAgentStep, ToolContext, ToolErrorType, ToolResult, failure
from tools.registry import ToolRegistry, select_tools
from tools.sandbox import Sandbox

__all__ = [
    "ClosableToolSource",
    "LocalSubAgentHost",
    "SubAgentTools",
    "create_sub_agents",
    "graph_dependencies",
    "open_thread",
    "session_dependencies",
]


async def open_thread(
    request: OpenRequest, settings: Settings, started: StartedThread, bus: EventBus, opened: AsyncExitStack
) -> Session:
    """Open the session of a thread.

    Raises:
        UsageError: no model can be chosen; the cost is limited but unknown; it is the thread of a sub-agent.
        ThreadHeld: another process holds the thread.
    """
    store, workspace, agent = started.store, request.workspace, started.agent
    threads = store.threads
    model = await open_model(settings, may_choose_later=request.may_choose_model, early=started.early)
    opened.push_async_callback(model.close)
    require_price(settings, model)
    requested = await asyncio.to_thread(requested_roots, request.add_dirs, settings)
    row = started.row or await create_row(request, settings, agent, threads)
    await reject_sub_agent(row, store)
    stored = tuple(dict.fromkeys((*row.roots, *requested)))
    roots = await asyncio.to_thread(roots_of, workspace, stored, settings)
    thread = Thread(
        row.thread_id,
        workspace,
        settings.mode if request.names_mode else row.mode,
        by=f"pid {os.getpid()}",
        max_steps=settings.max_steps,
        from_checkpoint=request.from_checkpoint,
        roots=roots.usable,
        attached=await asyncio.to_thread(lambda: frozenset(str(Path(one).resolve()) for one in request.attached)),
        read_buffer=request.read_buffer,
        budget=budget_of(settings),
        depth=await threads.depth(row.thread_id),
        role=agent.prompt,
    )
    _warn_about(started.unusable, roots.gone, bus)
    servers = SessionServers(settings, started.registry, workspace, bus, request.servers)
    dependencies = await session_dependencies(thread, settings, model, store, bus, servers)
    delete = partial(threads.delete_if_empty, row.thread_id, started.lock) if request.deletes_empty else None
    dependencies = replace(dependencies, lock=started.lock, delete_if_empty=delete)
    session = await Session.open(thread, dependencies)
    opened.push_async_callback(servers.close)
    await servers.start(again=row.checkpoint_id is not None)
    if request.awaits_servers:
        await servers.wait(settings.mcp_wait)
    await _store_choices(request, row, thread, model, threads, stored)
    return session


def _warn_about(unusable: Sequence[str], gone: Iterable[object], bus: EventBus) -> None:
    for line in unusable:
        bus.publish(WarningIssued(f"Plug-in not loaded: {line}"))
    for folder in gone:
        bus.publish(WarningIssued(f"The added folder {folder} no longer exists and is ignored."))


async def _store_choices(
    request: OpenRequest,
    row: ThreadRow,
    thread: Thread,
    model: OpenedModel,
    threads: ThreadTable,
    roots: tuple[str, ...],
) -> None:
    """What the user chose for the thread is stored only once this process holds it."""
    if not row.model:
        await threads.set_model(row.thread_id, model.label)
    if row.workspace != str(thread.workspace):
        await threads.set_workspace(row.thread_id, str(thread.workspace))
    if thread.mode not in ("bypassPermissions", row.mode):
        await threads.set_mode(row.thread_id, thread.mode)
    if request.names_model:
        await store_model_choice(model, threads, row.thread_id)
    if roots != row.roots:
        await threads.set_roots(row.thread_id, roots)


class ClosableToolSource(ToolSource, Protocol):
    """Tools that end with the session."""

    async def close(self) -> None:
        """End what they need."""
        ...


async def session_dependencies(
    thread: Thread,
    settings: Settings,
    model: OpenedModel,
    store: Store,
    bus: EventBus,
    servers: ClosableToolSource | None = None,
) -> SessionDependencies:
    """The dependencies of a session. Without servers it has the built-in tools only; `close` closes all of them."""
    workspace, database, clock = thread.workspace, store.database, store.clock
    tools = servers or SessionServers(settings, default_registry(workspace, settings), workspace, bus)
    join = partial(_sub_agent_dependencies, settings, model, store)
    sub_agents = create_sub_agents(LocalSubAgentHost(thread, store.threads, store.journal, tools, join), settings)
    place = WorkFolders(workspace, thread.roots, thread.read_buffer)
    parts = await graph_dependencies(place, settings, model, store, bus, tools)
    if thread.depth:
        # For a sub-agent no model may judge what the user wants: its task was written by a model.
        parts = replace(parts, is_sub_agent=True, has_auto_mode=False)
    parts = replace(parts, instructions=partial(_instructions_with_role, thread, parts.instructions))
    has_mentions = thread.depth == 0 and choose_model(settings).kind != "offline"
    mentions = FileMentions(parts.toolbox, workspace, thread.roots, thread.attached, pasted_dir(os.environ))
    shells = _open_shells(settings, store, bus, tools)
    saver = CheckpointSaver(database, DECIDING)
    watchers = [] if thread.depth else [*_watchers(settings, thread, bus, model)]
    return SessionDependencies(
        graph=ThreadGraph(build_graph(replace(parts, shells=shells), saver), thread.thread_id),
        models=ThreadModels(model, store.threads, thread.thread_id),
        lock=thread_lock(database, clock),
        decisions=SqliteDecisions(database),
        journal=store.journal,
        toolbox=parts.toolbox,
        blobs=store.blobs,
        inbox=SqliteInbox(database, clock),
        rewinds=SqliteRewinds(database, clock),
        files=RestorableFiles(workspace, store.blobs, thread.roots),
        head=store.head,
        is_imported=store.threads.is_imported,
        prune_if_grown=partial(saver.prune_if_grown, thread.thread_id, settings.keep_turns),
        store_mode=store.threads.set_mode,
        instructions=parts.instructions,
        shells=shells,
        sandbox=partial(sandbox_status, await _swept_sandbox(settings, thread)),
        clock=clock,
        bus=bus,
        close=partial(_close, tools, model, database, watchers),
        sub_agents=sub_agents,
        hooks=parts.hooks if parts.hooks and thread.depth == 0 else NO_HOOKS,
        mentions=mentions if has_mentions else NO_MENTION_EXPANSION,
        find_context_window=parts.find_context_window,
    )


class _Watcher(Protocol):
    """Follows the event bus of a session."""

    async def close(self) -> None: ...


def _watchers(settings: Settings, thread: Thread, bus: EventBus, model: OpenedModel) -> Iterator[_Watcher]:
    if tracer := trace_turns(settings, bus, lambda: model.label, os.environ):
        yield tracer
    if settings.has_notifications:
        from graph_agent.app.notifications import subscribe_notifications  # noqa: PLC0415 - few have them

        yield subscribe_notifications(settings, thread.thread_id, thread.workspace, bus)


async def _swept_sandbox(settings: Settings, thread: Thread) -> Sandbox | None:
    """The sandbox of a thread, after removing what a killed process left behind."""
    sandbox = sandbox_of(settings, thread.workspace, thread.roots)
    if sandbox is not None:
        await asyncio.to_thread(sandbox.sweep)
    return sandbox


def _instructions_with_role(thread: Thread, instructions: Callable[[], str]) -> str:
    return with_role(instructions(), thread.role)


async def _sub_agent_dependencies(
    settings: Settings,
    model: OpenedModel,
    store: Store,
    thread: Thread,
    bus: EventBus,
    tools: "SubAgentTools",
) -> SessionDependencies:
    """Model and database are the parent's, which closes them; a model of its own ends with the sub-agent."""
    if not thread.model:
        return replace(await session_dependencies(thread, settings, model, store, bus, tools), close=tools.close)
    settings = with_model(settings, thread.model)
    async with AsyncExitStack() as opened:
        own = await open_model(settings, may_choose_later=False)
        opened.push_async_callback(own.close)
        require_price(settings, own)
        await store.threads.set_model(thread.thread_id, own.label)
        dependencies = await session_dependencies(thread, settings, own, store, bus, tools)
        return replace(dependencies, close=opened.pop_all().aclose)


def _open_shells(settings: Settings, store: Store, bus: EventBus, tools: ToolSource) -> Shells:
    """The background shells of a session, attached to the tools that use them."""
    records = SqliteShells(store.database, store.clock)
    shells = Shells(records, store.blobs, bus.publish, keeps=settings.background_shells == "keep")
    attach_shells(tools.registry, shells)
    return shells


async def _close(
    tools: ClosableToolSource,
    model: OpenedModel,
    database: Database,
    watchers: Sequence[_Watcher],
) -> None:
    for watcher in watchers:
        await watcher.close()
    await tools.close()
    await model.close()
    await database.close()


async def graph_dependencies(
    place: WorkFolders,
    settings: Settings,
    model: OpenedModel,
    store: Store,
    bus: EventBus,
    servers: ToolSource,
) -> GraphDependencies:
    """The dependencies of the graph's nodes."""
    database, clock = store.database, store.clock
    storage = ToolStorage(
        store.blobs, SqliteFileStates(database, clock), store.journal, SqliteGrants(database), store.threads
    )
    toolbox = await open_toolbox(place, settings, storage, bus, servers)

    def instructions() -> str:
        return prompt_now(place.workspace, settings, place.roots, clock.now()[:10])

    def warn(text: str) -> None:
        bus.publish(WarningIssued(text))

    has_hooks = settings.hooks != HookSettings()
    hooks = CommandHooks(settings.hooks, place.workspace, warn, redactor()) if has_hooks else None
    return GraphDependencies(
        model,
        toolbox,
        store.journal,
        SqliteBarrier(database),
        clock,
        bus,
        instructions,
        ModelWindows(settings, model),
        store.blobs,
        meter=meter_of(settings),
        early_reads=early_reads_of(toolbox),
        unused_requests=SqliteInbox(database, clock).unused_requests,
        has_auto_mode=choose_model(settings).kind in ("endpoint", "factory"),
        hooks=hooks,
    )


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
    registry, thread = host.servers.registry, host.thread
    agents = load_agents(settings, os.environ, registry.names())
    sub_agents = SubAgents(replace(host, agents=agents))
    may_delegate = thread.depth < settings.max_task_depth
    runner = _TaskRunner(sub_agents)
    register_new_task(registry, thread.workspace, agents, may_delegate=may_delegate, sub_agents=runner)
    return sub_agents
