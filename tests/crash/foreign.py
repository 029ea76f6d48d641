"""The kills of the sweep against graphs of other people, with durable tool calls and without.

The graphs are on LangGraph's own saver, run with invoke and with ainvoke: a StateGraph with a tool node, an agent
of create_agent without and with LangChain's approvals, and a sub-graph with a wrapped tool. Processes are killed
at numbered points (around each write of saver and journal, around the effect of a tool) and at random instants; in
a fifth of the trials two work on the thread at once. A person answers truthfully, after a look at the effects.

    python -m tests.crash.foreign --kills N [--server]

With --server the journal is on a PostgreSQL server.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from graph_agent.durable import CallHeld, Journal, ToolPolicy, answer
from tests.crash.kill_points import Countdown
from tests.fakes.postgres_server import PostgresServer, find_programs, running_server
from tests.fakes.tool_graphs import (
    KINDS,
    START_MESSAGE,
    Kind,
    ask_for,
    charge_tool,
    empty_journal,
    foreign_graph,
    history_faults,
    questions_of,
)

__all__ = ["SHAPES", "Shape", "Trial", "main", "sweep"]

_CONFIG: Any = {"configurable": {"thread_id": "foreign"}}
_CARDS = {"c1": "a", "c2": "b", "c3": "c"}
_SCRIPT = [
    ask_for(*(("charge", {"card": _CARDS[call_id]}, call_id) for call_id in ("c1", "c2"))),
    ask_for(("charge", {"card": _CARDS["c3"]}, "c3")),
]
_NOTHING = object()
_ROUNDS = 20
_RUNS_UNTIL_STUCK = 15
_MOST_POINTS = 90
_LONGEST_RUN_S = 0.25
_KILLED, _DONE, _AGAIN = -signal.SIGKILL, 0, 3


@dataclass(frozen=True)
class Shape:
    """A graph and how it is run."""

    kind: Kind
    is_async: bool = False
    is_reviewed: bool = False
    """Whether LangChain's own middleware asks for an approval of each call."""

    def __str__(self) -> str:
        review = ", approvals" if self.is_reviewed else ""
        return f"{self.kind}{review}{', async' if self.is_async else ''}"


SHAPES = (
    *(Shape(kind, is_async) for is_async in (False, True) for kind in KINDS),
    *(Shape("agent", is_async, is_reviewed=True) for is_async in (False, True)),
)


class _Saver(SqliteSaver):
    """LangGraph's saver with kill points around its writes."""

    points: Countdown

    def put(self, *args: Any, **kwargs: Any) -> Any:
        return self.points.beside("saver.put", super().put)(*args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> Any:
        return self.points.beside("saver.put_writes", super().put_writes)(*args, **kwargs)


class _AsyncSaver(AsyncSqliteSaver):
    """Likewise for asynchronous runs."""

    points: Countdown

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return await self.points.around("saver.put", super().aput)(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> Any:
        return await self.points.around("saver.put_writes", super().aput_writes)(*args, **kwargs)


class _Journal(Journal):
    """The journal with kill points around its writes."""

    def __init__(self, place: Path | str, points: Countdown) -> None:
        super().__init__(place)
        for name in ("claim", "finish", "stop", "decide", "ask", "take_answers"):
            setattr(self, name, points.beside(f"journal.{name}", getattr(self, name)))


@dataclass
class Trial:
    """One thread in a folder of its own, killed and continued until it is done."""

    folder: Path
    shape: Shape
    is_durable: bool
    asks: bool
    """Whether each call needs an approval."""
    has_rivals: bool = False
    """Whether two processes work on the thread at once."""
    journal_url: str = ""
    """Of a database on a server; empty: a file."""
    tally: Counter[str] = field(default_factory=Counter)

    def run(self, kills: "list[int | float]") -> None:
        """Run processes until one is done, the first of them killed at a point (a number) or after some seconds."""
        self.folder.mkdir(parents=True)
        # Of two processes that set up the tables at once, LangGraph's saver has one fail: "database is locked".
        with SqliteSaver.from_conn_string(str(self._checkpoints)) as saver:
            saver.setup()
        for kill in [*kills, *[None] * _RUNS_UNTIL_STUCK]:
            code = self._process(kill)
            self.tally["kills"] += code == _KILLED
            if code == _DONE:
                break
            if code not in (_KILLED, _AGAIN):
                self.tally["failed runs"] += 1
        else:
            self.tally["stuck"] += 1
        self._check()

    @property
    def _checkpoints(self) -> Path:
        return self.folder / "checkpoints.sqlite"

    def _process(self, kill: "int | float | None") -> int:
        """Run a process to its end, beside a rival that begins at the same instant where there is one."""
        begun = self._begin(Countdown(kill if isinstance(kill, int) else None))
        rival = self._begin(Countdown(None), is_rival=True) if self.has_rivals else None
        if isinstance(kill, float):
            time.sleep(kill)
            os.kill(begun, signal.SIGKILL)
        if rival is not None:
            self.tally["rivals"] += 1
            os.waitpid(rival, 0)
        return os.waitstatus_to_exitcode(os.waitpid(begun, 0)[1])

    def _begin(self, points: Countdown, *, is_rival: bool = False) -> int:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                start = None if is_rival else START_MESSAGE
                code = asyncio.run(self._alive(points, start)) if self.shape.is_async else self._live(points, start)
            except CallHeld:
                code = _AGAIN
            finally:
                os._exit(code)
        return child

    def graph(self, saver: Any, points: Countdown) -> Any:
        """The graph in this process."""
        saver.points = points
        place = self.journal_url or self.folder / "journal.sqlite"
        journal = _Journal(place, points) if self.is_durable else None
        tools = [charge_tool(self.folder / "effects", points.point)]
        reviews = [HumanInTheLoopMiddleware({"charge": True})] if self.shape.is_reviewed else []
        policy = ToolPolicy(approve=self.asks)
        return foreign_graph(self.shape.kind, _SCRIPT, tools, saver, journal, policy, middleware=reviews)

    def _sync_graph(self, points: Countdown) -> Any:
        return self.graph(_Saver(sqlite3.connect(self._checkpoints, check_same_thread=False)), points)

    def _live(self, points: Countdown, start: Any) -> int:
        """What a program does that finds a thread in whatever state."""
        graph = self._sync_graph(points)
        for _ in range(_ROUNDS):
            if (work := self._work(graph.get_state(_CONFIG), start)) is _NOTHING:
                return _DONE
            graph.invoke(work, _CONFIG, durability="sync")
        return _AGAIN

    async def _alive(self, points: Countdown, start: Any) -> int:
        """As `_live`."""
        async with aiosqlite.connect(self._checkpoints) as connection:
            graph = self.graph(_AsyncSaver(connection), points)
            for _ in range(_ROUNDS):
                if (work := self._work(await graph.aget_state(_CONFIG), start)) is _NOTHING:
                    return _DONE
                await graph.ainvoke(work, _CONFIG, durability="sync")
        return _AGAIN

    def _work(self, snapshot: Any, start: Any) -> Any:
        """What a graph in this state is to be run with.

        A new message on a thread that has one already makes LangGraph drop what is open, so only one of two
        processes begins the thread, with `start`.
        """
        if snapshot.interrupts:
            if questions := questions_of(one for one in snapshot.interrupts if "questions" in one.value):
                return answer(snapshot, self._answers(questions))
            decisions = {
                one.id: {"decisions": [{"type": "approve"} for _ in one.value["action_requests"]]}
                for one in snapshot.interrupts
            }
            return Command(resume=decisions)
        if snapshot.tasks:  # Not `next`: that is empty where a step has run but is not in a checkpoint yet.
            return None
        return _NOTHING if snapshot.values.get("messages") or start is None else start

    def _answers(self, questions: dict[str, str]) -> dict[str, Any]:
        done = self.effects()
        found = {call_id: "done" if done[card] else "retry" for call_id, card in _CARDS.items()}
        return {call_id: "approve" if kind == "approval" else found[call_id] for call_id, kind in questions.items()}

    def effects(self) -> Counter[str]:
        """How often each card was charged."""
        file = self.folder / "effects"
        return Counter(file.read_text().split() if file.exists() else ())

    def _check(self) -> None:
        """Compare from outside: the effects, and the conversation as it ended."""
        messages = self._sync_graph(Countdown(None)).get_state(_CONFIG).values.get("messages", [])
        results = {one.tool_call_id for one in messages if isinstance(one, ToolMessage) and one.status == "success"}
        effects = self.effects()
        self.tally["trials"] += 1
        self.tally["calls run twice"] += sum(count - 1 for count in effects.values())
        self.tally["outcomes lost"] += sum(call not in results or not effects[_CARDS[call]] for call in _CARDS)
        self.tally["invalid histories"] += bool(history_faults(messages))


def sweep(
    kills: int,
    seed: int,
    *,
    is_durable: bool,
    shapes: tuple[Shape, ...] = SHAPES,
    server: PostgresServer | None = None,
) -> dict[Shape, Counter[str]]:
    """Kill about so many processes, spread over the graphs; what was found, by graph."""
    template = empty_journal(server) if server else ""
    chance = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="foreign-"))
    found: dict[Shape, Counter[str]] = {shape: Counter() for shape in shapes}
    number = 0
    while sum(tally["kills"] for tally in found.values()) < kills and number < 3 * kills:
        shape = shapes[number % len(shapes)]
        asks, has_rivals = is_durable and chance.random() < 0.5, chance.random() < 0.2
        url = server.create_database(template) if server else ""
        trial = Trial(root / str(number), shape, is_durable, asks and not shape.is_reviewed, has_rivals, url)
        trial.run([_instant(chance) for _ in range(chance.choice((1, 1, 2)))])
        if server:
            server.drop_database(url)
        found[shape] += trial.tally
        shutil.rmtree(trial.folder)
        number += 1
    shutil.rmtree(root)
    return found


def _instant(chance: random.Random) -> int | float:
    point = partial(chance.randint, 1, _MOST_POINTS)
    return point() if chance.random() < 0.7 else chance.uniform(0.005, _LONGEST_RUN_S)


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graphs", default="", help="only those whose name contains this, such as 'async'")
    parser.add_argument("--only", choices=("durable", "plain"), help="only with the library, or without")
    parser.add_argument("--server", action="store_true", help="keep the journal on a PostgreSQL server")
    options = parser.parse_args(arguments)
    programs = find_programs()
    if options.server and programs is None:
        parser.error("no PostgreSQL server was found (apt install postgresql)")
    with running_server(programs) if options.server and programs else nullcontext() as server:
        return _report(options, server)


def _report(options: argparse.Namespace, server: PostgresServer | None) -> int:
    columns = (
        "trials",
        "kills",
        "rivals",
        "calls run twice",
        "outcomes lost",
        "invalid histories",
        "stuck",
        "failed runs",
    )
    print(f"{'graph':24}{'tool calls':12}" + "".join(f"{name:>18}" for name in columns))  # noqa: T201 - a report
    broken = 0
    shapes = tuple(shape for shape in SHAPES if options.graphs in str(shape))
    for is_durable in (True, False):
        if options.only == ("plain" if is_durable else "durable"):
            continue
        found = sweep(options.kills, options.seed, is_durable=is_durable, shapes=shapes, server=server)
        for shape, tally in found.items():
            figures = "".join(f"{tally[name]:18}" for name in columns)
            print(f"{shape!s:24}{'durable' if is_durable else 'plain':12}{figures}")  # noqa: T201 - a report
            broken += sum(tally[name] for name in columns[3:]) if is_durable else 0
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
