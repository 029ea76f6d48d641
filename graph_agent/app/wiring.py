"""Joins the concrete parts on one database: what a session works with, whichever model it has."""

import asyncio
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from graph_agent.app.delegating import ChosenTools, House, sub_agents_of
from graph_agent.app.instructions import instructions_for, remembered
from graph_agent.app.metering import meter_of
from graph_agent.app.models import NotedModels, OpenedModel
from graph_agent.app.roots import Place
from graph_agent.app.secrets import scrub_here
from graph_agent.app.servers import SessionServers
from graph_agent.app.tooling import (
    Servers,
    ToolStorage,
    default_registry,
    early_reads_of,
    lend_shells,
    open_toolbox,
)
from graph_agent.app.walls import sandbox_of, walls_of
from graph_agent.app.windows import ModelWindows
from graph_agent.config.choice import choose_model
from graph_agent.config.paths import blob_dir, memory_file
from graph_agent.config.settings import Settings
from graph_agent.events import EventBus, Warned
from graph_agent.graph.build import Parts, build_graph
from graph_agent.graph.edges import DECIDING
from graph_agent.ports import SystemClock, Toolbox
from graph_agent.ports.hooks import NO_HOOKS, Hooks
from graph_agent.ports.mentions import NO_MENTIONS, Mentions
from graph_agent.session.parts import SessionParts, Thread
from graph_agent.session.run import GraphRun
from graph_agent.store.barrier import SqliteBarrier
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.database import Database
from graph_agent.store.decisions import SqliteDecisions
from graph_agent.store.file_states import SqliteFileStates
from graph_agent.store.grants import SqliteGrants
from graph_agent.store.inbox import SqliteInbox
from graph_agent.store.journal import SqliteJournal
from graph_agent.store.lock import FlockThreadLock
from graph_agent.store.rewinds import SqliteRewinds
from graph_agent.store.saver import CheckpointSaver
from graph_agent.store.shells import SqliteShells
from graph_agent.store.threads import ThreadTable
from graph_agent.toolbox.hooks import CommandHooks
from graph_agent.toolbox.mentions import FileMentions
from graph_agent.toolbox.restoring import RestorableFiles
from graph_agent.toolbox.shells import Shells
from tools.sandbox import Sandbox

__all__ = ["OwnTools", "Store", "graph_parts", "open_store", "session_parts"]


class OwnTools(Servers, Protocol):
    """Tools that end with the session."""

    async def close(self) -> None:
        """End what they need."""
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """Everything that stands on the one database."""

    database: Database
    clock: SystemClock
    blobs: FileBlobs
    journal: SqliteJournal
    threads: ThreadTable

    async def head(self, thread_id: str) -> str:
        """The newest checkpoint of a thread; empty when it has none."""
        found = await self.threads.get(thread_id)
        return found.checkpoint_id or "" if found else ""


async def open_store(path: Path) -> Store:
    """Open the database.

    Raises:
        StorageError: it cannot be used.
    """
    clock, database = SystemClock(), await Database.open(path)
    blobs = FileBlobs(blob_dir(path))
    return Store(database, clock, blobs, SqliteJournal(database, blobs, clock), ThreadTable(database, clock))


async def graph_parts(
    place: Place,
    settings: Settings,
    model: OpenedModel,
    store: Store,
    bus: EventBus,
    servers: OwnTools | None = None,
) -> Parts:
    """The parts of the graph's nodes; without servers the tools are those that everyone has."""
    workspace = place.workspace
    servers = servers or _no_more(settings, workspace, bus)
    database, clock = store.database, store.clock
    storage = ToolStorage(store.blobs, SqliteFileStates(database, clock), store.journal, SqliteGrants(database))
    toolbox = await open_toolbox(workspace, settings, storage, bus, servers, roots=place.roots)
    instructions = partial(_instructions, place, settings.instructions, clock)
    barrier, meter = SqliteBarrier(database), meter_of(settings)
    return Parts(
        model,
        toolbox,
        store.journal,
        barrier,
        clock,
        bus,
        instructions,
        ModelWindows(settings, model),
        store.blobs,
        meter=meter,
        early=early_reads_of(toolbox),
        judges=choose_model(settings).kind in ("endpoint", "factory"),
        hooks=_hooks(settings, workspace, bus),
    )


async def session_parts(
    thread: Thread,
    settings: Settings,
    model: OpenedModel,
    store: Store,
    bus: EventBus,
    servers: OwnTools | None = None,
) -> SessionParts:
    """The parts of one thread's session; closing them closes servers, model and database. See `graph_parts`."""
    servers = servers or _no_more(settings, thread.workspace, bus)
    database, clock, sandbox = store.database, store.clock, await _swept_sandbox(settings, thread)
    join = partial(_joined, settings, model, store)
    sub_agents = sub_agents_of(House(thread, store.threads, store.journal, servers, join), settings)
    parts = await graph_parts(Place(thread.workspace, thread.roots), settings, model, store, bus, servers)
    shells = _shells(settings, store, bus, servers)
    saver, parts = CheckpointSaver(database, DECIDING), replace(_at_depth(parts, thread.depth), shells=shells)
    return SessionParts(
        run=GraphRun(build_graph(parts, saver), thread.thread_id),
        models=NotedModels(model, store.threads, thread.thread_id),
        lock=FlockThreadLock(database, clock),
        decisions=SqliteDecisions(database),
        journal=store.journal,
        toolbox=parts.toolbox,
        blobs=store.blobs,
        inbox=SqliteInbox(database, clock),
        rewinds=SqliteRewinds(database, clock),
        files=RestorableFiles(thread.workspace, store.blobs, thread.roots),
        head=store.head,
        is_imported=store.threads.is_imported,
        tidy=partial(saver.tidy, thread.thread_id, settings.keep_turns),
        instructions=parts.instructions,
        shells=shells,
        walls=partial(walls_of, sandbox),
        clock=clock,
        bus=bus,
        close=partial(_close, servers, model, database),
        sub_agents=sub_agents,
        hooks=parts.hooks if thread.depth == 0 else NO_HOOKS,
        mentions=_mentions(settings, thread, parts.toolbox),
    )


def _at_depth(parts: Parts, depth: int) -> Parts:
    """Parts as a thread of the user's own has them, or a sub-agent, whose task is in the words of a model: no judge
    can go by what the user wants there."""
    return parts if depth == 0 else replace(parts, is_sub_agent=True, judges=False)


async def _swept_sandbox(settings: Settings, thread: Thread) -> Sandbox | None:
    """The sandbox of a thread, without what a process that died left of it."""
    sandbox = sandbox_of(settings, thread.workspace, thread.roots)
    if sandbox is not None:
        await asyncio.to_thread(sandbox.sweep)
    return sandbox


def _mentions(settings: Settings, thread: Thread, toolbox: Toolbox) -> Mentions:
    """Sub-agents are told what a model wrote, and the offline language knows its words alone."""
    is_spoken_to = thread.depth == 0 and choose_model(settings).kind != "offline"
    return FileMentions(toolbox, thread.workspace, thread.roots) if is_spoken_to else NO_MENTIONS


def _hooks(settings: Settings, workspace: Path, bus: EventBus) -> Hooks:
    def warn(text: str) -> None:
        bus.publish(Warned(text))

    return CommandHooks(settings.hooks, workspace, warn, scrub_here())


def _shells(settings: Settings, store: Store, bus: EventBus, servers: OwnTools) -> Shells:
    """The background shells of a session, lent to the tools for them."""
    records = SqliteShells(store.database, store.clock)
    shells = Shells(records, store.blobs, bus.publish, keeps=settings.background_shells == "keep")
    lend_shells(servers.registry, shells)
    return shells


def _no_more(settings: Settings, workspace: Path, bus: EventBus) -> SessionServers:
    """The tools that everyone has: none of its servers is started."""
    return SessionServers(settings, default_registry(workspace, settings), workspace, bus)


async def _joined(
    settings: Settings, model: OpenedModel, store: Store, thread: Thread, bus: EventBus, tools: ChosenTools
) -> SessionParts:
    return await session_parts(thread, settings, model, store, bus, tools)


def _instructions(place: Place, of_project: str, clock: SystemClock) -> str:
    memories = remembered(memory_file(os.environ))
    return instructions_for(place.workspace, clock.now()[:10], memories, of_project, place.roots)


async def _close(servers: OwnTools, model: OpenedModel, database: Database) -> None:
    await servers.close()
    await model.close()
    await database.close()
