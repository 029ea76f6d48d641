"""One run of the product in a forked process: the real graph, tools, store and session, with kill points around.

The person in it answers as the scene says, and notes each question before answering and each answer once it is
recorded. Of earlier runs they see only what the product shows.
"""

import asyncio
import os
import random
import signal
import sqlite3
import time
import traceback
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graph_agent.app.approvals import answer_approval
from graph_agent.app.mcp_servers import SessionServers
from graph_agent.app.reader import read_database
from graph_agent.app.session_parts import LocalSubAgentHost, SubAgentTools, create_sub_agents
from graph_agent.app.threads import fork
from graph_agent.app.toolset import (
    ToolSource,
    ToolStorage,
    WorkFolders,
    attach_shells,
    default_registry,
    early_reads_of,
    open_toolbox,
)
from graph_agent.calls import ToolCallInfo
from graph_agent.config.paths import blob_dir
from graph_agent.events import AnswerKind, EventBus
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.model.offline.model import OfflineModel
from graph_agent.ports import AlwaysRules, Outcome, Scope, SystemClock
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.toolbox import NO_HOOKS, Hooks
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.session import Session
from graph_agent.session.subagents import SubAgents
from graph_agent.session.thread_graph import ThreadGraph
from graph_agent.session.time_travel import apply_rewind, plan_rewind
from graph_agent.session.turn_result import OpenQuestion, TurnResult
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions, SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal, SqliteShells
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.storage.sqlite.threads import SqliteFileStates, SqliteInbox, ThreadTable
from graph_agent.toolbox.background_shells import Shells
from graph_agent.toolbox.workspace_files import RestorableFiles
from tests.crash.ablations import ABLATIONS, Ablation
from tests.crash.kill_points import Countdown, KillPointSaver, killable
from tests.crash.scenes import ALWAYS, EDITED, PlayModel, Scene, Wanted, marker_in, turn_of, words_for
from tests.crash.services import settings_of
from tests.crash.world import World

__all__ = ["THREAD", "Plan", "live", "warm_up"]

THREAD, FORK = "crash", "fork of crash"
FINISHED, STUCK = 0, 3


@dataclass(frozen=True)
class Plan:
    """How a run is to go."""

    kill_at: int | None = None
    """Number of the kill point to die at; None: run to the end."""
    kill_on: str = ""
    """Count only the points of this label."""
    kill_after_s: float | None = None
    """Die at this time instead, wherever that is."""
    record: Path | None = None
    """File that takes the labels of the points passed."""
    ablation: Ablation | None = None
    """The safeguard that this run goes without."""


def live(world: World, scene: Scene, plan: Plan) -> int:
    """Fork a run and wait for it; its exit code, negative when it was killed."""
    child = os.fork()
    if child == 0:
        code = STUCK
        try:
            os.environ["GRAPH_AGENT_HOME"] = str(world.database.parent)
            countdown = Countdown(plan.kill_at, plan.record, plan.kill_on)
            _die_between_file_operations(countdown)
            if plan.ablation is not None:
                ABLATIONS[plan.ablation].take_out()
            code = asyncio.run(_Run(world, scene, countdown).run())
        except BaseException as error:  # noqa: BLE001 - a forked child must not return into the test runner
            world.note("failed", error=repr(error), trace="".join(traceback.format_exception(error)))
        finally:
            os._exit(code)
    if plan.kill_after_s is not None:
        time.sleep(plan.kill_after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def warm_up(world: World, scene: Scene) -> None:
    """Play the scene in this process: its forks find in caches what else would take each a third of its time."""
    with patch.dict(os.environ, GRAPH_AGENT_HOME=str(world.database.parent)):
        asyncio.run(_Run(world, scene, Countdown(None, None)).run())


def _die_between_file_operations(countdown: Countdown) -> None:
    """Points around the file operations that a written file and a stored blob are made of."""
    for name in ("fsync", "rename", "unlink", "rmdir"):
        setattr(os, name, countdown.beside(f"os.{name}", getattr(os, name)))


class _Run:
    def __init__(self, world: World, scene: Scene, countdown: Countdown) -> None:
        self._world = world
        self._scene = scene
        self._countdown = countdown

    async def run(self) -> int:
        """Work until every turn of the scene is over."""
        session, run = await self._open()
        rest = await session.start()
        for _ in range(100):
            if rest.questions:
                rest = await self._answer(session, rest)
            elif rest.status == "resumable":
                rest = await session.continue_turn()
            elif (said := turn_of((await run.snapshot()).values.get("messages", ())) + 1) < len(self._scene.turns):
                rest = await self._send(session, said)
            elif self._scene.goes_back and not self._world.notes("went back"):
                await session.close()
                session, run, rest = await self._back()
            elif self._scene.rewinds and not self._world.notes("rewound"):
                rest = await self._rewind(session)
            elif self._scene.forks and not self._world.notes("forked"):
                await session.close()
                session, run, rest = await self._fork()
            else:
                await session.close()
                self._world.note("finished", answer=rest.answer)
                return FINISHED
        self._world.note("stuck", status=rest.status)
        return STUCK

    async def _send(self, session: Session, turn: int) -> TurnResult:
        if not self._scene.queues:
            self._world.note("sends", turn=turn)
            return await session.send(f"turn {turn}")
        meant, dropped = f"turn {turn}", f"dropped {turn}"
        waiting = {text: number for number, text in await session.queued()}
        if meant not in waiting:
            self._world.note("sends", turn=turn)
            await session.queue(meant)
        if dropped in waiting or {"kind": "taken back", "turn": turn} not in self._taken_back():
            number = waiting.get(dropped) or await session.queue(dropped)
            if await session.remove_queued(number):
                self._world.note("taken back", turn=turn)
        sent = await session.send_queued()
        assert sent is not None
        return sent

    def _taken_back(self) -> list[dict[str, Any]]:
        return [{"kind": note["kind"], "turn": note["turn"]} for note in self._world.notes("taken back")]

    async def _back(self) -> tuple[Session, ThreadGraph, TurnResult]:
        session, run = await self._open(self._somewhere("takes up"))
        self._world.note("went back")
        return session, run, await session.start()

    async def _rewind(self, session: Session) -> TurnResult:
        place = self._somewhere("rewinds")
        seen = await plan_rewind(THREAD, place, "both", self._parts)
        left = [] if seen.conflicts else await apply_rewind(seen.rewind, self._parts)
        if seen.conflicts or left:
            self._world.note("failed", error=f"a rewind to {place} left {left or seen.conflicts}")
        self._world.note("rewound")
        return await session.start()

    async def _fork(self) -> tuple[Session, ThreadGraph, TurnResult]:
        place = self._somewhere("forks")
        with read_database(self._world.database) as reader:
            is_made = any(thread.thread_id == FORK for thread in reader.threads())
        if not is_made:
            await fork(self._world.database, place, thread_id=FORK)
        self._world.note("forked")
        session, run = await self._open()
        return session, run, await session.start()

    def _somewhere(self, what: str) -> str:
        """Some checkpoint of the thread; the log says that it is gone back to, and what had begun by then."""
        with closing(sqlite3.connect(self._world.database)) as connection, connection:
            of = "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
            places = connection.execute(of, (THREAD,)).fetchall()
            begun = connection.execute("SELECT call_id, attempt FROM journal").fetchall()
        connection.close()
        place: str = random.choice(places)[0]
        self._world.note("goes back", to=place, begun=begun)
        self._world.note(what)
        return place

    async def _open(self, checkpoint_id: str | None = None) -> tuple[Session, ThreadGraph]:
        bus, workspace = EventBus(), self._world.workspace
        self._database = database = await Database.open(self._world.database)
        self._settings = settings_of(self._scene, self._world)
        self._threads = killable(
            ThreadTable(database, SystemClock()), "threads", ("create_child",), self._countdown
        )
        servers = SessionServers(self._settings, default_registry(workspace), workspace, bus)
        thread_id = FORK if self._world.notes("forked") else THREAD
        if await self._threads.get(THREAD) is None:
            await self._threads.create(THREAD, str(workspace), "play", "default")
        thread = Thread(thread_id, workspace, "default", "person", 50, checkpoint_id)

        async def close() -> None:
            await servers.close()
            await database.close()

        self._parts = replace(await self._join(thread, bus, servers), close=close)
        await servers.start()
        return await Session.open(thread, self._parts), self._parts.graph

    async def _join(self, thread: Thread, bus: EventBus, servers: ToolSource) -> SessionDependencies:
        """The dependencies of a thread's session, a sub-agent's too, on the run's one database."""
        clock, points, thread_id, database = SystemClock(), self._countdown, thread.thread_id, self._database
        blobs = FileBlobs(blob_dir(self._world.database))
        journal = killable(
            SqliteJournal(database, blobs, clock),
            "journal",
            ("claim", "record_process", "finish", "record_interruption"),
            points,
        )
        states = killable(SqliteFileStates(database, clock), "file_states", ("set",), points)
        storage = ToolStorage(blobs, states, journal, SqliteGrants(database), self._threads)
        records = killable(SqliteShells(database, clock), "shells", ("add", "read", "end"), points)
        shells = Shells(records, blobs, bus.publish)
        attach_shells(servers.registry, shells)
        host = LocalSubAgentHost(thread, self._threads, journal, servers, self._joined)
        sub_agents = create_sub_agents(host, self._settings) if self._scene.task else SubAgents()
        tools = await open_toolbox(WorkFolders(self._world.workspace), self._settings, storage, bus, servers)
        toolbox = killable(tools, "toolbox", ("record_intent", "run"), points)
        methods = ("session_started", "message_submitted", "before", "after", "turn_ended")
        hooks = (
            killable(_RemarkingHooks(has_messages=self._scene.queues), "hooks", methods, points)
            if self._scene.is_hooked
            else NO_HOOKS
        )
        model = PlayModel(self._scene, self._world, points.point)
        barrier = killable(SqliteBarrier(database), "barrier", ("wait",), points)
        parts = GraphDependencies(
            model,
            toolbox,
            journal,
            barrier,
            clock,
            bus,
            lambda: "system",
            self._window,
            blobs,
            early_reads=early_reads_of(tools),
            hooks=hooks,
        )
        saver = KillPointSaver(database, points)

        async def head(thread_id: str) -> str:
            row = await self._threads.get(thread_id)
            return row.checkpoint_id or "" if row else ""

        async def prune_if_grown() -> None:
            await saver.prune_if_grown(thread_id, self._scene.keep_turns)

        async def close() -> None:
            """Nothing is its own."""

        decisions = killable(
            SqliteDecisions(database), "decisions", ("insert", "mark_applied", "supersede"), points
        )
        return SessionDependencies(
            graph=ThreadGraph(build_graph(parts, saver), thread_id),
            models=OfflineModel(),
            lock=FlockThreadLock(database, clock),
            decisions=decisions,
            journal=journal,
            toolbox=toolbox,
            blobs=blobs,
            inbox=killable(SqliteInbox(database, clock), "inbox", ("queue", "remove", "take"), points),
            rewinds=killable(SqliteRewinds(database, clock), "rewinds", ("plan", "finish"), points),
            files=killable(RestorableFiles(self._world.workspace, blobs), "files", ("restore_file",), points),
            head=head,
            is_imported=self._threads.is_imported,
            prune_if_grown=points.around("tidy", prune_if_grown),
            store_mode=self._threads.set_mode,
            instructions=lambda: "system",
            clock=clock,
            bus=bus,
            close=close,
            shells=shells,
            hooks=hooks,
            sub_agents=sub_agents,
        )

    async def _joined(self, thread: Thread, bus: EventBus, tools: SubAgentTools) -> SessionDependencies:
        return await self._join(thread, bus, tools)

    async def _window(self, tokens: int) -> ContextWindow:
        return ContextWindow(self._scene.window) if self._scene.window else ContextWindow()

    async def _answer(self, session: Session, rest: TurnResult) -> TurnResult:
        for item in rest.questions:
            asked = {"call": item.question.call_id, "question": item.question.kind, "marker": _marker(item)}
            is_ambiguous = asked["marker"] in ("", ALWAYS)
            ran = not is_ambiguous and any(run.startswith(asked["marker"]) for run in self._world.runs())
            more = {"reason": item.question.reason, "risk": item.call.get("risk"), "tool": item.call["tool_name"]}
            self._world.note("asked", **asked, **more, ran=ran)
        if any(item.question.kind == "approval" and self._wanted(item).answer == "stop" for item in rest.questions):
            self._world.note("stops")
            return await session.stop()
        for item in rest.questions:
            kind, arguments = self._choose(item)
            facts: dict[str, Any] = {"call": item.question.call_id, "answer": kind, "marker": _marker(item)}
            always = await self._always(session, item)
            facts |= {"question": item.question.kind, "always": always is not None}
            self._world.note("answering", **facts)
            if item.processes and kind == "retry":
                await session.end_processes(item.question)
            if self._scene.is_answered_elsewhere and kind in ("approve", "reject"):
                await answer_approval(self._world.database, item.question.call_id, kind, by="elsewhere")
            else:
                words = words_for(_marker(item)) if kind == "answer" else ""
                await session.decide(item.question, kind, arguments=arguments, reason=words, always=always)
            self._world.note("answered", **facts)
        if not self._scene.stops_running:
            return await session.proceed()
        return await self._stop_once_it_ran(session, rest)

    async def _stop_once_it_ran(self, session: Session, rest: TurnResult) -> TurnResult:
        going = asyncio.create_task(session.proceed())
        while not going.done() and not self._world.runs():  # noqa: ASYNC110 - a file has no event to wait for
            await asyncio.sleep(0.01)
        if not going.done() and any(_marker(item) and self._wanted(item).stays for item in rest.questions):
            self._world.note("stops")
            await session.stop()
        return await going

    def _choose(self, item: OpenQuestion) -> tuple[AnswerKind, Mapping[str, Any] | None]:
        if item.question.kind == "recovery":
            return self._recover(item), None
        match self._wanted(item).answer:
            case "edit":
                return "edit", _edited(item.call["arguments"])
            case "answer" | "reject" as kind:
                return kind, None
        return "approve", None

    async def _always(self, session: Session, item: OpenQuestion) -> AlwaysRules | None:
        if item.question.kind != "approval" or self._wanted(item).answer != "always":
            return None
        rules = (await session.propose_grant(item.question)).rules
        # On a machine that is too busy to read the command in time no rule can be made of it.
        return AlwaysRules("thread", rules) if rules else None

    def _wanted(self, item: OpenQuestion) -> Wanted:
        turn, message, position = (int(digit) for digit in _marker(item)[1:4])
        return self._scene.messages(turn)[message][position]

    def _recover(self, item: OpenQuestion) -> AnswerKind:
        if item.question.reason == "never_started" or item.finding_verdict == "not_applied":
            return "retry"
        if item.finding_verdict == "already_applied":
            return "done"
        choices: tuple[AnswerKind, ...] = ("retry", "done", "cancel")
        return random.choice(choices)


class _RemarkingHooks(Hooks):
    """Hooks that object to nothing and add a remark to each result."""

    def __init__(self, *, has_messages: bool) -> None:
        self._has_messages = has_messages

    @property
    def has_message_hooks(self) -> bool:
        return self._has_messages

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        return "[a hook saw it]"


def _marker(item: OpenQuestion) -> str:
    return marker_in(item.call["arguments"])


def _edited(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {**arguments, "command": str(arguments["command"]).replace(" >>", f"{EDITED} >>")}
