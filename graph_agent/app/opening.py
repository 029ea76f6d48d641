"""Open sessions. This is the composition root: the only place that joins the concrete parts on one database."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from graph_agent.app.instructions import read_context_file, system_prompt, with_role
from graph_agent.app.mcp_servers import SessionServers
from graph_agent.app.models import (
    OpenedModel,
    ThreadModels,
    budget_of,
    meter_of,
    open_model,
    require_price,
    settings_for_choice,
    store_model_choice,
)
from graph_agent.app.named_agents import NO_AGENT, agent_of_thread, agent_to_json
from graph_agent.app.project_trust import project_at, project_notices
from graph_agent.app.subagents import LocalSubAgentHost, SubAgentTools, create_sub_agents
from graph_agent.app.toolset import (
    ToolSource,
    ToolStorage,
    WorkFolders,
    attach_shells,
    default_registry,
    early_reads_of,
    full_registry,
    open_toolbox,
    policy_of,
    requested_roots,
    roots_of,
    sandbox_of,
    sandbox_status,
)
from graph_agent.app.tracing import trace_turns
from graph_agent.config.mcp_servers import validate_server
from graph_agent.config.model_choice import choose_model, display_url
from graph_agent.config.paths import folder_at, memory_file, own_command, pasted_dir
from graph_agent.config.project import Project
from graph_agent.config.redaction import redactor
from graph_agent.config.settings import HookSettings, McpServer, Settings
from graph_agent.config.sources import load_settings, stricter_mode, with_model
from graph_agent.errors import AgentError, UsageError
from graph_agent.events import EventBus, WarningIssued
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.edges import DECIDING
from graph_agent.graph.run_context import new_owner_token
from graph_agent.model.openai.context_windows import ModelWindows
from graph_agent.ports import SystemClock
from graph_agent.ports.toolbox import NO_HOOKS, NO_MENTION_EXPANSION, ReadBuffer
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.session import Session
from graph_agent.session.thread_graph import ThreadGraph
from graph_agent.storage import DatabaseLock, open_blobs, open_database, thread_lock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal, SqliteShells
from graph_agent.storage.sqlite.projections import delete_threads
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox, ThreadRow, ThreadTable
from graph_agent.toolbox.background_shells import Shells
from graph_agent.toolbox.hooks import CommandHooks
from graph_agent.toolbox.workspace_files import FileMentions, RestorableFiles
from tools.agent_ops.new_task import NamedAgent
from tools.sandbox import Sandbox

__all__ = [
    "ClosableToolSource",
    "Store",
    "existing_folder",
    "graph_dependencies",
    "open_session",
    "open_store",
    "session_dependencies",
]

_FLAG_SETTINGS = {
    "db": "database",
    "mode": "mode",
    "model": "model.name",
    "effort": "model.effort",
    **{name: name for name in ("max_steps", "max_tokens", "max_cost")},
    "notify_after": "notify.after",
}
"""Command-line flags and the setting that each one gives."""
_OTHER_FLAGS = (
    *("add_dirs", "agent", "attached", "awaits_servers", "checkpoint_id", "mcp_servers", "read_buffer"),
    *("may_choose_model", "model_left", "no_stream", "notify", "prompt", "trust"),
)


async def open_session(
    *,
    workspace: Path,
    thread_id: str | None = None,
    flags: Mapping[str, Any] | None = None,
    bus: EventBus | None = None,
) -> Session:
    """Open a thread in this process, a new one if `thread_id` is None or unknown, and hold it until `close`.

    Args:
        workspace: the folder the thread with this whole id works in; an existing thread moves there.
        flags: `add_dirs`, `db`, `effort`, `mode`, `model`, `max_steps`, `max_tokens`, `max_cost`, `no_stream`,
            `notify_after` in place of settings. `agent` is that of a new thread. `checkpoint_id` is an older one to
            branch from. `may_choose_model` leaves an unclear model to `Session.switch_model`. `model_left` names
            the `thread` that a chat leaves, and the `name` of its model for the new one. `awaits_servers` waits for
            MCP servers, at most `mcp_wait`; `mcp_servers` adds tables of them. `notify` is "desktop" or a webhook's
            address. `trust` trusts the project here. `attached` files may be read anywhere, `prompt` comes first.
            `read_buffer` asks the user's editor.
        bus: receives the session's events.

    Raises:
        ConfigError: a setting is wrong.
        ThreadHeld: another process holds the thread.
        StorageError: the database cannot be used.
        UsageError: a flag is unknown or wrong; no model can be chosen; the cost is limited but unknown.
    """
    given, bus, folder = dict(flags or {}), bus or EventBus(), await asyncio.to_thread(existing_folder, workspace)
    project = await asyncio.to_thread(project_at, folder, once=bool(given.get("trust")))
    settings = load_settings(os.environ, flags=_settings_in_flags(given), project=project)
    policy_of(settings)  # A wrong rule is reported before there is a thread.
    request = _OpenRequest.from_flags(folder, thread_id, given)
    async with AsyncExitStack() as opened:
        session = await _open(request, settings, bus, opened)
        for notice in await asyncio.to_thread(_opening_notices, settings, project):
            bus.publish(WarningIssued(notice))
        opened.pop_all()
    return session


def _settings_in_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {*_FLAG_SETTINGS, *_OTHER_FLAGS}
    if unknown := given.keys() - known:
        raise UsageError(
            f"open_session has no flag {', '.join(map(repr, sorted(unknown)))}. It has {', '.join(sorted(known))}."
        )
    values = {key: given[flag] for flag, key in _FLAG_SETTINGS.items() if given.get(flag) is not None}
    values |= {"model.stream": "off"} if given.get("no_stream") else {}
    match given.get("notify"):
        case None:
            return values
        case "desktop":
            return values | {"notify.desktop": True}
        case str(address) if address.startswith(("http://", "https://")):
            return values | {"notify.webhook": address}
        case unknown:
            shown = display_url(unknown) if "://" in unknown else unknown
            raise UsageError(f"--notify {shown!r} is neither desktop nor an address with http:// or https://.")


def _opening_notices(settings: Settings, project: Project) -> list[str]:
    """What of the project is ignored, and whether commands cannot commit in its folder."""
    sandbox = sandbox_of(settings, project.folder)
    git = sandbox.closed_repository() if sandbox else None
    if git is None:
        return [*project_notices(project)]
    closed = (
        f"Commands cannot commit here: in the sandbox the repository {git}, which lies outside the workspace, is "
        "read-only. To allow it, add that folder to the setting sandbox_write."
    )
    return [*project_notices(project), closed]


def existing_folder(workspace: Path) -> Path:
    """The folder to work in, resolved.

    Raises:
        UsageError: there is no such folder.
    """
    folder = folder_at(workspace)
    if folder is None:
        raise UsageError(f"The workspace {str(workspace)!r} is not a folder. Create it, or choose another one.")
    return folder


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    workspace: Path
    thread_id: str | None
    names_model: bool
    """The model was named, or is taken over from the thread that is left; it is stored with the thread."""
    model_left: Mapping[str, str]
    """The `thread` that a chat leaves and the `name` of its model; empty at the start of a chat."""
    names_mode: bool
    """The mode was given on the command line, which outranks the stored one."""
    from_checkpoint: str | None
    may_choose_model: bool
    """Whether a person can be asked for the model; otherwise an unclear one is an error."""
    awaits_servers: bool
    add_dirs: tuple[str, ...]
    """Folders to add to those that the thread has."""
    attached: tuple[str, ...]
    """Files that the user named on the command line."""
    read_buffer: ReadBuffer | None
    agent: str
    """Name of the agent that a new thread works as; empty for none."""
    prompt: str
    """The first message, to be queued before anything that takes time; empty for none."""
    servers: Mapping[str, McpServer]
    """MCP servers that the user's editor adds."""

    @classmethod
    def from_flags(cls, folder: Path, thread_id: str | None, given: Mapping[str, Any]) -> "_OpenRequest":
        """What `open_session` was asked for."""
        return cls(
            workspace=folder,
            thread_id=thread_id,
            names_model=bool(given.get("model") or given.get("model_left")),
            model_left=given.get("model_left") or {},
            names_mode="mode" in given,
            from_checkpoint=given.get("checkpoint_id"),
            may_choose_model=bool(given.get("may_choose_model")),
            awaits_servers=bool(given.get("awaits_servers")),
            add_dirs=tuple(given.get("add_dirs") or ()),
            attached=tuple(given.get("attached") or ()),
            read_buffer=given.get("read_buffer"),
            agent=str(given.get("agent") or ""),
            prompt=str(given.get("prompt") or ""),
            servers={name: validate_server(name, one) for name, one in (given.get("mcp_servers") or {}).items()},
        )


async def _open(request: _OpenRequest, settings: Settings, bus: EventBus, opened: AsyncExitStack) -> Session:
    store = await open_store(settings.database)
    threads, workspace = store.threads, request.workspace
    opened.push_async_callback(store.database.close)
    settings = await _with_thread_model(request, settings, threads, bus)
    row = await threads.get(request.thread_id) if request.thread_id else None
    lock = thread_lock(store.database, store.clock)
    if request.prompt and not request.agent:  # Which agents there are is known only once the plug-ins are loaded.
        row = row or await _create_row(request, settings, NO_AGENT, threads)
        await _queue_prompt(request, row, store, lock, opened)
    registry, unusable = await asyncio.to_thread(full_registry, workspace, settings)
    agent = await asyncio.to_thread(agent_of_thread, row.agent if row else None, request.agent, settings, registry)
    request, settings = _apply_agent(agent, request, settings, row)
    if request.prompt and request.agent:
        row = row or await _create_row(request, settings, agent, threads)
        await _queue_prompt(request, row, store, lock, opened)
    model = await open_model(settings, may_choose_later=request.may_choose_model)
    opened.push_async_callback(model.close)
    require_price(settings, model)
    requested = await asyncio.to_thread(requested_roots, request.add_dirs, settings)
    row = row or await _create_row(request, settings, agent, threads)
    await _reject_sub_agent(row, store)
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
    _warn_about(unusable, roots.gone, bus)
    servers = SessionServers(settings, registry, workspace, bus, request.servers)
    dependencies = await session_dependencies(thread, settings, model, store, bus, servers)
    session = await Session.open(thread, replace(dependencies, lock=lock))
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
    request: _OpenRequest,
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


async def _queue_prompt(
    request: _OpenRequest, row: ThreadRow, store: "Store", lock: DatabaseLock, opened: AsyncExitStack
) -> None:
    """Store the prompt while holding the thread; it is removed if the session cannot be opened, not by a kill."""
    await _reject_sub_agent(row, store)
    await lock.acquire(row.thread_id, new_owner_token())
    inbox, thread_id = SqliteInbox(store.database, store.clock), row.thread_id
    number = await inbox.queue(thread_id, request.prompt, f"pid {os.getpid()}")

    async def remove(_kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, AgentError):
            await inbox.remove(thread_id, number)
            if row.checkpoint_id is None and not await inbox.waiting(thread_id):
                lock.mark_deleted()
                await store.database.write(lambda connection: delete_threads(connection, [thread_id]))
        await lock.release()

    opened.push_async_exit(remove)


async def _create_row(
    request: _OpenRequest, settings: Settings, agent: NamedAgent, threads: ThreadTable
) -> ThreadRow:
    """A new thread; without approvals it is only as long as this process works on it."""
    mode = "default" if settings.mode == "bypassPermissions" else settings.mode
    thread_id, stored = request.thread_id or uuid4().hex, agent_to_json(agent)
    return await threads.create(thread_id, str(request.workspace), "", mode, stored)


def _apply_agent(
    agent: NamedAgent, request: "_OpenRequest", settings: Settings, row: ThreadRow | None
) -> tuple["_OpenRequest", Settings]:
    """The request and settings with the model and mode of an agent, unless the user chose others."""
    if agent.model and not request.names_model and (row is None or not row.model_choice):
        request, settings = replace(request, names_model=True), with_model(settings, agent.model)
    if row is None and not request.names_mode:
        settings = settings.model_copy(update={"mode": stricter_mode(agent.mode, settings.mode)})
    return request, settings


async def _with_thread_model(
    request: _OpenRequest, settings: Settings, threads: ThreadTable, bus: EventBus
) -> Settings:
    """The settings with the model that was chosen for the thread, unless another is asked for now."""
    if request.model_left:
        left = await threads.get(request.model_left["thread"])
        chosen = settings_for_choice(settings, left.model_choice) if left and left.model_choice else None
        return chosen or with_model(settings, request.model_left["name"])
    row = await threads.get(request.thread_id) if request.thread_id and not request.names_model else None
    if row is None or not row.model_choice:
        return settings
    chosen = settings_for_choice(settings, row.model_choice)
    if chosen is None:
        bus.publish(WarningIssued(f"The thread's model, {row.model}, is not available. Another model answers."))
    return chosen or settings


async def _reject_sub_agent(row: ThreadRow, store: "Store") -> None:
    """Only its parent can continue the thread of a sub-agent: it knows its tools, its limits and its call.

    Raises:
        ThreadHeld: its parent works on it now.
        UsageError: it is such a thread.
    """
    owner = row
    while await store.threads.depth(owner.thread_id):
        above = await store.threads.get(owner.parent_thread or "")
        if above is None:
            break
        owner = above
    if owner is row:
        return
    lock = thread_lock(store.database, store.clock)
    await lock.acquire(row.thread_id, new_owner_token())
    await lock.release()
    raise UsageError(
        f"{row.thread_id} is the thread of a sub-agent. Resume its parent: {own_command()} resume {owner.thread_id}"
    )


class ClosableToolSource(ToolSource, Protocol):
    """Tools that end with the session."""

    async def close(self) -> None:
        """End what they need."""
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """The parts that share the one database."""

    database: Database
    clock: SystemClock
    blobs: FileBlobs
    journal: SqliteJournal
    threads: ThreadTable

    async def head(self, thread_id: str) -> str:
        """The newest checkpoint of a thread; empty if it has none."""
        found = await self.threads.get(thread_id)
        return found.checkpoint_id or "" if found else ""


async def open_store(path: Path) -> Store:
    """Open the database.

    Raises:
        StorageError: it cannot be used.
    """
    clock, database = SystemClock(), await open_database(path)
    blobs = open_blobs(path)
    return Store(database, clock, blobs, SqliteJournal(database, blobs, clock), ThreadTable(database, clock))


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
    tools: SubAgentTools,
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
        memory = read_context_file(memory_file(os.environ))
        return system_prompt(place.workspace, clock.now()[:10], memory, settings.instructions, place.roots)

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
        has_auto_mode=choose_model(settings).kind in ("endpoint", "factory"),
        hooks=hooks,
    )
