"""A stage for scenarios: one thread on a real database, and runs that open it, work and close it or are killed."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
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
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.storage.sqlite.threads import SqliteInbox, ThreadTable
from graph_agent.toolbox.workspace_files import RestorableFiles
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox

__all__ = ["THREAD", "Stage", "answer", "checkpoints", "finish_questions", "to_the_end", "two_turns"]

THREAD = "thread-1"


@dataclass
class Stage:
    """Model and toolbox outlive a run, as the world does."""

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
            store_mode=threads.set_mode,
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


def checkpoints(stage: Stage) -> list[str]:
    with closing(sqlite3.connect(stage.database)) as connection, connection:
        found = connection.execute("SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id").fetchall()
    connection.close()
    return [checkpoint_id for (checkpoint_id,) in found]


async def answer(session: Session, rest: TurnResult, **kinds: str) -> TurnResult:
    for item in rest.questions:
        kind = kinds.get(item.question.call_id, "approve")
        assert kind in ("approve", "reject")
        await session.decide(item.question, "reject" if kind == "reject" else "approve", reason="not that")
    return await session.proceed()


async def to_the_end(session: Session, rest: TurnResult) -> TurnResult:
    """Continue as a person would who rejects n and retries nothing that may have started."""
    for _ in range(20):
        if rest.status == "resumable":
            rest = await session.continue_turn()
        elif rest.questions:
            assert {item.question.kind for item in rest.questions} == {"approval"}
            rest = await answer(session, rest, n="reject")
        else:
            return rest
    raise AssertionError(f"still not idle after 20 steps: {rest}")


async def finish_questions(session: Session, rest: TurnResult) -> TurnResult:
    """Approve and retry until nothing is open."""
    for _ in range(20):
        if rest.status == "resumable":
            rest = await session.continue_turn()
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "retry")
        if rest.questions:
            rest = await session.proceed()
    return rest


async def two_turns(stage: Stage) -> None:
    """Turn one with an approved, a refused and a read call, turn two with a failing and an approved one."""
    stage.model = ScriptedModel(
        calls(("r", "read_a"), ("w", "write_a"), ("n", "write_b")),
        text("one"),
        calls(("f", "fail_a"), ("v", "write_c")),
        text("two"),
    )
    async with stage.open_session() as session:
        await answer(session, await session.send("first"), n="reject")
        await answer(session, await session.send("second"))
