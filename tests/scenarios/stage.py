"""A stage for scenarios: one thread on a real database, played by lives that open, work and close or die."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.config.paths import blob_dir
from graph_agent.events import Event, EventBus
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.edges import DECIDING
from graph_agent.ports import SystemClock
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.toolbox import NO_HOOKS, Hooks
from graph_agent.ports.usage import UNLIMITED, UNPRICED, Budget, Meter
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.session import Session
from graph_agent.session.thread_graph import ThreadGraph
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadTable
from graph_agent.toolbox.file_restore import RestorableFiles
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.scripted_toolbox import ScriptedToolbox

__all__ = ["THREAD", "Stage"]

THREAD = "thread-1"


@dataclass
class Stage:
    """Model and toolbox outlive a life, as the world does."""

    database: Path
    model: ScriptedModel
    toolbox: ScriptedToolbox = field(default_factory=ScriptedToolbox)
    events: list[Event] = field(default_factory=list)
    max_steps: int = 50
    keep_turns: int = 50
    budget: Budget = UNLIMITED
    meter: Meter = UNPRICED
    has_auto_mode: bool = False
    window: ContextWindow = field(default_factory=ContextWindow)
    hooks: Hooks = NO_HOOKS

    @asynccontextmanager
    async def open_session(
        self,
        *,
        mode: str = "default",
        database: Database | None = None,
        checkpoint: str | None = None,
        thread: str = THREAD,
    ) -> AsyncIterator[Session]:
        """One process's session; closing gives the thread back, as an orderly exit does."""
        opened = database or await Database.open(self.database)
        session = await self._session(opened, mode, checkpoint, thread)
        try:
            yield session
        finally:
            await session.close()

    async def _session(self, database: Database, mode: str, checkpoint: str | None, thread_id: str) -> Session:
        clock, bus, blobs = SystemClock(), EventBus(), FileBlobs(blob_dir(self.database))
        bus.subscribe(lambda _, event: self.events.append(event))
        journal = SqliteJournal(database, blobs, clock)
        threads = ThreadTable(database, clock)
        graph = build_graph(
            GraphDependencies(
                self.model,
                self.toolbox,
                journal,
                SqliteBarrier(database),
                clock,
                bus,
                lambda: "system",
                self._window,
                blobs,
                meter=self.meter,
                has_auto_mode=self.has_auto_mode,
                hooks=self.hooks,
            ),
            CheckpointSaver(database, DECIDING),
        )

        async def head(thread_id: str) -> str:
            row = await threads.get(thread_id)
            return row.checkpoint_id or "" if row else ""

        async def prune_if_grown() -> None:
            await CheckpointSaver(database).prune_if_grown(thread_id, self.keep_turns)

        parts = SessionDependencies(
            graph=ThreadGraph(graph, thread_id),
            models=self.model,
            lock=FlockThreadLock(database, clock),
            decisions=SqliteDecisions(database),
            journal=journal,
            toolbox=self.toolbox,
            blobs=blobs,
            inbox=SqliteInbox(database, clock),
            rewinds=SqliteRewinds(database, clock),
            files=RestorableFiles(self.database.parent, blobs),
            head=head,
            is_imported=threads.is_imported,
            prune_if_grown=prune_if_grown,
            instructions=lambda: "system",
            clock=clock,
            bus=bus,
            close=database.close,
            hooks=self.hooks,
        )
        thread = Thread(
            thread_id, self.database.parent, mode, "tester", self.max_steps, checkpoint, budget=self.budget
        )
        return await Session.open(thread, parts)

    async def _window(self, tokens: int) -> ContextWindow:
        return self.window

    def types(self) -> list[str]:
        """What happened, by type, without the deltas."""
        return [event.type for event in self.events if event.type != "text_delta"]
