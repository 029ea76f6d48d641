"""The graph under LangGraph's own API: for its server, which finds it by `langgraph.json`, and for programs.

Their runner owns threads, runs and queues; calls are as durable as everywhere. Journal and blobs are those of the
settings, so that every read command shows what was done.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graph_agent.app.mcp_servers import SessionServers
from graph_agent.app.models import open_model
from graph_agent.app.named_agents import remove_new_task
from graph_agent.app.opening import existing_folder
from graph_agent.app.project_trust import settings_at
from graph_agent.app.session_parts import graph_dependencies
from graph_agent.app.toolset import WorkFolders, full_registry, policy_of, roots_of
from graph_agent.config.sources import load_settings
from graph_agent.errors import InternalError, UsageError
from graph_agent.events import EventBus
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.edges import DECIDING
from graph_agent.graph.run_context import RunContext
from graph_agent.storage import DatabaseLock, open_database, thread_lock
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.threads import Store, open_store
from tools import BaseTool

if TYPE_CHECKING:
    from graph_agent.graph.build import AgentGraph, Saver

__all__ = ["WORKSPACE", "checkpointer", "graph", "open_graph"]

WORKSPACE = "GRAPH_AGENT_WORKSPACE"
"""Variable with the folder that the served threads work in; without it the folder the server was started in."""


@asynccontextmanager
async def checkpointer() -> AsyncIterator[CheckpointSaver]:
    """The server's checkpointer: its own keeps states in memory and writes them only now and then."""
    settings = await asyncio.to_thread(load_settings, os.environ)
    async with await open_database(settings.database) as database:
        yield CheckpointSaver(database, DECIDING)


async def graph() -> Any:
    """The compiled graph, without a checkpointer; asked for at each run, opened once.

    Raises:
        ConfigError: a setting is wrong.
        StorageError: the database cannot be used.
        UsageError: the workspace is no folder, or it is not clear which model is meant.
    """
    return build_graph(await _served_graph().dependencies())


@asynccontextmanager
async def open_graph(
    *,
    workspace: Path,
    checkpointer: "Saver | Literal['own'] | None",
    settings: Mapping[str, Any],
    tools: Sequence[BaseTool],
    bus: EventBus,
) -> "AsyncIterator[AgentGraph]":
    """The compiled graph for another program; see `graph_agent.open_graph`."""
    served = _ServedGraph(workspace, settings, tools, bus)
    try:
        dependencies = await served.dependencies()
        yield build_graph(dependencies, served.own_saver() if checkpointer == "own" else checkpointer)
    finally:
        await served.close()


class _ServedGraph:
    """What is opened once and kept until the end of the process, or of the block."""

    def __init__(
        self,
        workspace: Path,
        settings: Mapping[str, Any] | None = None,
        tools: Sequence[BaseTool] = (),
        bus: EventBus | None = None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._tools = tools
        self._bus = bus or EventBus()
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._store: Store | None = None
        self._dependencies: GraphDependencies | None = None
        self._locks: dict[str, DatabaseLock] = {}

    async def dependencies(self) -> GraphDependencies:
        """The dependencies of every run; the instructions are those of now."""
        async with self._opening:
            self._dependencies = self._dependencies or await self._open()
        instructions = await asyncio.to_thread(self._dependencies.instructions)
        return replace(self._dependencies, instructions=lambda: instructions)

    def own_saver(self) -> CheckpointSaver:
        """The saver of the database of the settings."""
        if self._store is None:
            raise InternalError("the graph is not open")
        return CheckpointSaver(self._store.database, DECIDING)

    async def close(self) -> None:
        """Give the threads back and end what was started."""
        await self._opened.aclose()

    async def _open(self) -> GraphDependencies:
        workspace = await asyncio.to_thread(existing_folder, self._workspace)
        settings = await asyncio.to_thread(settings_at, workspace, self._settings)
        policy_of(settings)  # A wrong rule is reported at once.
        self._store = store = await open_store(settings.database)
        self._opened.push_async_callback(store.database.close)
        model = await open_model(settings, may_choose_later=False)
        self._opened.push_async_callback(model.close)
        registry, _ = await asyncio.to_thread(full_registry, workspace, settings)
        remove_new_task(registry)  # One is a session of its own, and there is none here.
        for tool in self._tools:
            registry.register(tool, origin="plugin")
        servers = SessionServers(settings, registry, workspace, self._bus)
        self._opened.push_async_callback(servers.close)
        await servers.start()
        roots = await asyncio.to_thread(roots_of, workspace, (), settings)
        place = WorkFolders(workspace, roots.usable)
        dependencies = await graph_dependencies(place, settings, model, store, self._bus, servers)
        lock, decisions = partial(self._lock, store), SqliteDecisions(store.database)
        return replace(dependencies, ensure_lock=lock, decisions=decisions)

    async def _lock(self, store: Store, thread_id: str) -> None:
        """Hold a thread from its first step here until the end, so that no command runs it as well."""
        async with self._opening:
            if thread_id not in self._locks:
                if await store.threads.is_imported(thread_id, await store.head(thread_id)):
                    raise UsageError(
                        f"Thread {thread_id} was imported from a file. Resume it once with `graph-agent resume "
                        f"{thread_id}`, where you are asked about its open calls."
                    )
                lock = thread_lock(store.database, store.clock)
                await lock.acquire(thread_id, RunContext().owner_token)
                self._opened.push_async_callback(lock.release)
                self._locks[thread_id] = lock


@cache
def _served_graph() -> _ServedGraph:
    return _ServedGraph(Path(os.environ.get(WORKSPACE) or "."))
