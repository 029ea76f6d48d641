"""The kills of the sweep against graphs of other people, with durable tool calls and without.

Three graphs on LangGraph's own saver: a StateGraph with a tool node, an agent of create_agent, and a sub-graph
with a wrapped tool. Processes are killed at numbered points (around each write of saver and journal, around the
effect of a tool) and at random instants; in a fifth of the trials two work on the thread at once. A person answers
truthfully, after a look at the effects.

    python -m tests.crash.foreign --kills N
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_agent.durable import CallHeld, Journal, ToolPolicy, answer
from tests.crash.kill_points import Countdown
from tests.fakes.tool_graphs import (
    KINDS,
    START_MESSAGE,
    Kind,
    ask_for,
    charge_tool,
    foreign_graph,
    history_faults,
    questions_of,
)

__all__ = ["Trial", "main", "sweep"]

_CONFIG: Any = {"configurable": {"thread_id": "foreign"}}
_CARDS = {"c1": "a", "c2": "b", "c3": "c"}
_SCRIPT = [
    ask_for(*(("charge", {"card": _CARDS[call_id]}, call_id) for call_id in ("c1", "c2"))),
    ask_for(("charge", {"card": _CARDS["c3"]}, "c3")),
]
_RUNS_UNTIL_STUCK = 15
_MOST_POINTS = 90
_LONGEST_RUN_S = 0.25
_KILLED, _DONE, _AGAIN = -signal.SIGKILL, 0, 3


class _Saver(SqliteSaver):
    """LangGraph's saver with kill points around its writes."""

    points: Countdown

    def put(self, *args: Any, **kwargs: Any) -> Any:
        return self.points.beside("saver.put", super().put)(*args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> Any:
        return self.points.beside("saver.put_writes", super().put_writes)(*args, **kwargs)


class _Journal(Journal):
    """The journal with kill points around its writes."""

    def __init__(self, path: Path, points: Countdown) -> None:
        super().__init__(path)
        for name in ("claim", "finish", "stop", "decide", "ask", "take_answers"):
            setattr(self, name, points.beside(f"journal.{name}", getattr(self, name)))


@dataclass
class Trial:
    """One thread in a folder of its own, killed and continued until it is done."""

    folder: Path
    kind: Kind
    is_durable: bool
    asks: bool
    """Whether each call needs an approval."""
    has_rivals: bool = False
    """Whether two processes work on the thread at once."""
    tally: Counter[str] = field(default_factory=Counter)

    def run(self, kills: "list[int | float]") -> None:
        """Run processes until one is done, the first of them killed at a point (a number) or after some seconds."""
        self.folder.mkdir(parents=True)
        # Of two processes that set up the tables at once, LangGraph's saver has one fail: "database is locked".
        with SqliteSaver.from_conn_string(str(self.folder / "checkpoints.sqlite")) as saver:
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

    def _process(self, kill: "int | float | None") -> int:
        """Run a process to its end, beside a rival that begins at the same instant where there is one."""
        begun = self._begin(Countdown(kill if isinstance(kill, int) else None))
        rival = self._begin(Countdown(None)) if self.has_rivals else None
        if isinstance(kill, float):
            time.sleep(kill)
            os.kill(begun, signal.SIGKILL)
        if rival is not None:
            self.tally["rivals"] += 1
            os.waitpid(rival, 0)
        return os.waitstatus_to_exitcode(os.waitpid(begun, 0)[1])

    def _begin(self, points: Countdown) -> int:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = self._live(points)
            except CallHeld:
                code = _AGAIN
            finally:
                os._exit(code)
        return child

    def graph(self, points: Countdown) -> Any:
        """The graph in this process."""
        saver = _Saver(sqlite3.connect(self.folder / "checkpoints.sqlite", check_same_thread=False))
        saver.points = points
        journal = _Journal(self.folder / "journal.sqlite", points) if self.is_durable else None
        tools = [charge_tool(self.folder / "effects", points.point)]
        return foreign_graph(self.kind, _SCRIPT, tools, saver, journal, ToolPolicy(approve=self.asks))

    def _live(self, points: Countdown) -> int:
        """What a program does that finds a thread in whatever state."""
        graph = self.graph(points)
        for _ in range(20):
            snapshot = graph.get_state(_CONFIG)
            if snapshot.interrupts:
                work: Any = answer(snapshot, self._answers(questions_of(snapshot.interrupts)))
            elif snapshot.tasks:  # Not `next`: that is empty where a step has run but is not in a checkpoint yet.
                work = None
            elif snapshot.values.get("messages"):
                return _DONE
            else:
                work = START_MESSAGE
            graph.invoke(work, _CONFIG, durability="sync")
        return _AGAIN

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
        messages = self.graph(Countdown(None)).get_state(_CONFIG).values.get("messages", [])
        results = {one.tool_call_id for one in messages if isinstance(one, ToolMessage) and one.status == "success"}
        effects = self.effects()
        self.tally["trials"] += 1
        self.tally["calls run twice"] += sum(count - 1 for count in effects.values())
        self.tally["outcomes lost"] += sum(call not in results or not effects[_CARDS[call]] for call in _CARDS)
        self.tally["invalid histories"] += bool(history_faults(messages))


def sweep(kills: int, seed: int, *, is_durable: bool, kinds: tuple[Kind, ...] = KINDS) -> dict[Kind, Counter[str]]:
    """Kill about so many processes, spread over the graphs; what was found, by graph."""
    chance = random.Random(seed)
    root = Path(tempfile.mkdtemp(prefix="foreign-"))
    found: dict[Kind, Counter[str]] = {kind: Counter() for kind in kinds}
    number = 0
    while sum(tally["kills"] for tally in found.values()) < kills and number < 3 * kills:
        kind = kinds[number % len(kinds)]
        asks, has_rivals = is_durable and chance.random() < 0.5, chance.random() < 0.2
        trial = Trial(root / str(number), kind, is_durable, asks, has_rivals)
        trial.run([_instant(chance) for _ in range(chance.choice((1, 1, 2)))])
        found[kind] += trial.tally
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
    options = parser.parse_args(arguments)
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
    print(f"{'graph':12}{'tool calls':12}" + "".join(f"{name:>18}" for name in columns))  # noqa: T201 - a report
    broken = 0
    for is_durable in (True, False):
        for kind, tally in sweep(options.kills, options.seed, is_durable=is_durable).items():
            figures = "".join(f"{tally[name]:18}" for name in columns)
            print(f"{kind:12}{'durable' if is_durable else 'plain':12}{figures}")  # noqa: T201 - a report
            broken += sum(tally[name] for name in columns[3:]) if is_durable else 0
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
