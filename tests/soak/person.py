"""One process of the whole product, except the terminal, on the thread of a soak, with a person who acts at random.

python -m tests.soak.person FOLDER STEPS SEED     work until the thread has so many steps; exit 3 if it left before

Each question, answer and stop is noted before it is given, and each answer once it is recorded, as in the crash
tests.
"""

import asyncio
import random
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from graph_agent.app.opening import open_session
from graph_agent.errors import AgentError
from graph_agent.events import AnswerKind
from graph_agent.session.session import Session
from graph_agent.session.turn_result import OpenQuestion, TurnResult
from tests.crash.scenes import EDITED, marker_in, words_for
from tests.crash.world import World

__all__ = ["LEFT", "THREAD"]

THREAD = "crash"
LEFT = 3
_STAYS_AFTER = 0.65
"""The part of the steps after which no process leaves any more, so that the memory of a long one is measured."""
_MAX_CONTINUES = 3


class _Person:
    def __init__(self, world: World, session: Session, steps: int, seed: int) -> None:
        self._world = world
        self._session = session
        self._steps = steps
        self._chance = random.Random(seed)
        self._continues = 0

    async def work(self) -> int:
        result = await self._session.start()
        while True:
            steps = self._note_size()
            if not result.questions and result.status != "held" and steps >= self._steps:
                self._world.note("finished", answer=result.answer)
                return 0
            if steps < _STAYS_AFTER * self._steps and self._chance.random() < 0.01:
                return LEFT
            result = await self._act(result)

    async def _act(self, result: TurnResult) -> TurnResult:
        if result.questions:
            return await self._answer(result)
        if result.status in ("resumable", "model_error") and self._continues < _MAX_CONTINUES:
            self._continues += 1
            return await self._maybe_stop(self._session.continue_turn())
        self._continues = 0
        if self._chance.random() < 0.03:
            return await self._session.compact()
        return await self._maybe_stop(self._session.send(f"continue {self._chance.random()}"))

    async def _maybe_stop(self, work: Any) -> TurnResult:
        task: asyncio.Future[TurnResult] = asyncio.ensure_future(work)
        if self._chance.random() < 0.08:
            await asyncio.wait([task], timeout=self._chance.uniform(0, 0.3))
            if not task.done():
                self._world.note("stops")
                await self._session.stop()
        return await task

    async def _answer(self, result: TurnResult) -> TurnResult:
        for item in result.questions:
            call, marker = item.call, marker_in(item.call["arguments"])
            ran = bool(marker) and any(run.startswith(marker) for run in self._world.runs())
            asked = {"call": item.question.call_id, "question": item.question.kind, "marker": marker, "ran": ran}
            facts = {"tool": call["tool_name"], "risk": call.get("risk"), "reason": item.question.reason}
            self._world.note("asked", **asked, **facts)
        if self._chance.random() < 0.03:
            self._world.note("stops")
            return await self._session.stop()
        for item in result.questions:
            await self._decide(item)
        return await self._maybe_stop(self._session.proceed())

    async def _decide(self, item: OpenQuestion) -> None:
        marker = marker_in(item.call["arguments"])
        kind, arguments = self._choose(item, marker)
        facts: dict[str, Any] = {"call": item.question.call_id, "answer": kind, "marker": marker}
        facts |= {"question": item.question.kind, "always": False}
        self._world.note("answering", **facts)
        if item.processes and kind == "retry":
            await self._session.end_processes(item.question)
        reason = words_for(marker) if kind == "answer" else ""
        await self._session.decide(item.question, kind, arguments=arguments, reason=reason)
        self._world.note("answered", **facts)

    def _choose(self, item: OpenQuestion, marker: str) -> tuple[AnswerKind, dict[str, Any] | None]:
        if item.question.kind == "recovery":
            if item.question.reason == "never_started" or item.finding_verdict == "not_applied":
                return "retry", None
            choices: tuple[AnswerKind, ...] = ("retry", "done", "cancel")
            return "done" if item.finding_verdict == "already_applied" else self._chance.choice(choices), None
        if item.call["tool_name"] == "ask_user":
            return "answer", None
        if not marker or self._chance.random() < 0.1:
            return "reject", None
        command = str(item.call["arguments"].get("command", ""))
        if " >>" in command and self._chance.random() < 0.1:
            return "edit", {**item.call["arguments"], "command": command.replace(" >>", f"{EDITED} >>")}
        return "approve", None

    def _note_size(self) -> int:
        """Note the size of database and process; returns the steps so far."""
        with closing(sqlite3.connect(f"file:{self._world.database}?mode=ro", uri=True)) as connection, connection:
            pragmas = ("page_count", "freelist_count", "page_size")
            pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
            count = "SELECT count(*) FROM transcript WHERE role = 'assistant' AND thread_id = ?"
            steps: int = connection.execute(count, (THREAD,)).fetchone()[0]
        memory = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
        memory_kb = int(memory[1]) if memory else 0
        self._world.note("size", steps=steps, database=(pages - free) * size, memory_kb=memory_kb)
        return steps


async def _run(world: World, steps: int, seed: int) -> int:
    world.note("run begins")
    session = await open_session(workspace=world.workspace, thread_id=THREAD, flags={"db": str(world.database)})
    try:
        return await _Person(world, session, steps, seed).work()
    except AgentError as error:
        world.note("failed", error=repr(error))
        return 1
    finally:
        await session.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(World(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))))
