"""One life of the whole product, terminal aside, on the thread of a soak; the person in it acts by chance.

python -m tests.soak.life FOLDER STEPS SEED     work until the thread has so many steps; exit 3 when it left before

Each question, answer and stop is noted before it is given, and each answer once it stands, as in the crash trials.
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
from graph_agent.ports import AnswerKind
from graph_agent.session.session import Session
from graph_agent.session.turn_result import OpenQuestion, TurnResult
from tests.crash.scenes import EDITED, marker_in, words_for
from tests.crash.world import World

__all__ = ["LEFT", "THREAD"]

THREAD = "crash"
LEFT = 3
_STAYS_AFTER = 0.65
"""Part of the steps after which nobody leaves any more: the memory of one long life is looked at."""
_CONTINUES = 3


class _Person:
    def __init__(self, world: World, session: Session, steps: int, seed: int) -> None:
        self._world = world
        self._session = session
        self._steps = steps
        self._chance = random.Random(seed)
        self._tries = 0

    async def work(self) -> int:
        rest = await self._session.start()
        while True:
            steps = self._look()
            if not rest.questions and rest.status != "held" and steps >= self._steps:
                self._world.note("finished", answer=rest.answer)
                return 0
            if steps < _STAYS_AFTER * self._steps and self._chance.random() < 0.01:
                return LEFT
            rest = await self._act(rest)

    async def _act(self, rest: TurnResult) -> TurnResult:
        if rest.questions:
            return await self._answer(rest)
        if rest.status in ("resumable", "model_error") and self._tries < _CONTINUES:
            self._tries += 1
            return await self._maybe_stopping(self._session.continue_turn())
        self._tries = 0
        if self._chance.random() < 0.03:
            return await self._session.compact()
        return await self._maybe_stopping(self._session.send(f"go on {self._chance.random()}"))

    async def _maybe_stopping(self, work: Any) -> TurnResult:
        going = asyncio.ensure_future(work)
        if self._chance.random() < 0.08:
            await asyncio.wait([going], timeout=self._chance.uniform(0, 0.3))
            if not going.done():
                self._world.note("stops")
                await self._session.stop()
        rest: TurnResult = await going
        return rest

    async def _answer(self, rest: TurnResult) -> TurnResult:
        for item in rest.questions:
            marker = marker_in(item.call["arguments"])
            asked = {"call": item.question.call_id, "question": item.question.kind, "marker": marker}
            ran = bool(marker) and any(run.startswith(marker) for run in self._world.runs())
            told = {"tool": item.call["tool_name"], "risk": item.call.get("risk")}
            self._world.note("asked", **asked, **told, reason=item.question.reason, ran=ran)
        if self._chance.random() < 0.03:
            self._world.note("stops")
            return await self._session.stop()
        for item in rest.questions:
            await self._decide(item)
        return await self._maybe_stopping(self._session.proceed())

    async def _decide(self, item: OpenQuestion) -> None:
        marker = marker_in(item.call["arguments"])
        kind, arguments = self._choice(item, marker)
        facts: dict[str, Any] = {"call": item.question.call_id, "answer": kind, "marker": marker}
        facts |= {"question": item.question.kind, "always": False}
        self._world.note("answering", **facts)
        if item.processes and kind == "retry":
            await self._session.end_processes(item.question)
        words = words_for(marker) if kind == "answer" else ""
        await self._session.decide(item.question, kind, arguments=arguments, reason=words)
        self._world.note("answered", **facts)

    def _choice(self, item: OpenQuestion, marker: str) -> tuple[AnswerKind, dict[str, Any] | None]:
        if item.question.kind == "recovery":
            return self._recovery(item), None
        if item.call["tool_name"] == "ask_user":
            return "answer", None
        if not marker or self._chance.random() < 0.1:
            return "reject", None
        command = str(item.call["arguments"].get("command", ""))
        if " >>" in command and self._chance.random() < 0.1:
            return "edit", {**item.call["arguments"], "command": command.replace(" >>", f"{EDITED} >>")}
        return "approve", None

    def _recovery(self, item: OpenQuestion) -> AnswerKind:
        if item.question.reason == "never_started" or item.finding_verdict == "not_applied":
            return "retry"
        if item.finding_verdict == "already_applied":
            return "done"
        choices: tuple[AnswerKind, ...] = ("retry", "done", "cancel")
        return self._chance.choice(choices)

    def _look(self) -> int:
        """Note how big database and process are; the steps so far."""
        with closing(sqlite3.connect(f"file:{self._world.database}?mode=ro", uri=True)) as connection, connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            steps: int = connection.execute(
                "SELECT count(*) FROM transcript WHERE role = 'assistant' AND thread_id = ?", (THREAD,)
            ).fetchone()[0]
        connection.close()
        self._world.note("size", steps=steps, database=(pages - free) * size, memory_kb=_memory_kb())
        return steps


def _memory_kb() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


async def _live(world: World, steps: int, seed: int) -> int:
    world.note("life begins")
    session = await open_session(workspace=world.workspace, thread_id=THREAD, flags={"db": str(world.database)})
    try:
        return await _Person(world, session, steps, seed).work()
    except AgentError as error:
        world.note("failed", error=repr(error))
        return 1
    finally:
        await session.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(_live(World(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))))
