"""How a thread's storage and steps grow over a thousand steps and more, and how long it takes to look at them."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.timing import Contest
from tests.scenarios.growing import PER_TURN, RESULT, Growth, grow
from tests.scenarios.stage import THREAD

__all__ = ["Law", "contests_on_long_threads", "laws"]

_AGENT = (sys.executable, "-m", "graph_agent")
_KEEP_TURNS, _KEEP_ALL = 20, 10**6
_SHORT = 12
_CHECKPOINTS = 10_000
_CHECKPOINTS_PER_STEP = 6
_SPAN = 10
"""Turns that a figure is the mean of: processor time of one is too little to be told."""


@dataclass(frozen=True, slots=True)
class Law:
    """A figure late in a long thread against the same early in it, or against what it stands for."""

    name: str
    late: float
    early: float
    target: float

    @property
    def ratio(self) -> float:
        """How many times the early one the late one is."""
        return self.late / self.early


def laws(folder: Path, steps: int) -> Iterator[Law]:
    """Play so many steps on a thread that prunes itself at rest."""
    growth = asyncio.run(grow(folder / "pruned.db", steps, _KEEP_TURNS))
    cuts = [turn for turn in range(1, len(growth.rows)) if _is_cut(growth, turn)]
    first, last = cuts[0], cuts[-1]
    late, early = growth.pages[last] / last, growth.pages[_SPAN // PER_TURN] / (_SPAN // PER_TURN)
    page = 4096 / PER_TURN
    yield Law(f"bytes per step, {steps} steps / 10", late * page, early * page, 1.3)
    yield Law(f"bytes per step, {steps} steps / new content", growth.bytes_per_step(first, last), RESULT, 4)
    yield Law(f"rows of the state, {steps} steps / 60", _state_rows(growth, last), _state_rows(growth, first), 1.1)
    yield Law(f"cpu ms per step, {steps} steps / 10", _cpu_ms(growth, -1 - _SPAN), _cpu_ms(growth, 2), 1.5)


def contests_on_long_threads(folder: Path) -> tuple[Contest, ...]:
    """The commands that look at a thread, on one of ten thousand checkpoints against one of a few."""
    long, short = folder / "long.db", folder / "short.db"
    asyncio.run(grow(long, _CHECKPOINTS // _CHECKPOINTS_PER_STEP, _KEEP_ALL))
    asyncio.run(grow(short, _SHORT, _KEEP_ALL))
    commands: Mapping[str, tuple[tuple[str, ...], float]] = {
        "inspect": (("inspect", THREAD), 1.5),
        "threads show": (("threads", "show", THREAD), 3),
        # It prints a line for each: that is its work.
        "history": (("history", THREAD), 10),
        "resume": (("run", "--resume", THREAD, "--workspace", str(folder)), 1.5),
    }
    return tuple(
        Contest(
            f"{name}, 10,000 checkpoints / {_SHORT} steps",
            (*_AGENT, *command, "--db", str(long)),
            (*_AGENT, *command, "--db", str(short)),
            target,
        )
        for name, (command, target) in commands.items()
    )


def _is_cut(growth: Growth, turn: int) -> bool:
    return growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]


def _state_rows(growth: Growth, turn: int) -> int:
    return growth.rows[turn]["checkpoints"] + growth.rows[turn]["writes"]


def _cpu_ms(growth: Growth, first_turn: int) -> float:
    return sum(growth.cpu_s[first_turn:][:_SPAN]) / _SPAN / PER_TURN * 1000
