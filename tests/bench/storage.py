"""How a thread's storage, steps, memory and opening grow over a thousand steps and more."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.bench.figures import AGENT, Figure, Row, Spread, in_turns, pairs
from tests.bench.ground import Ground, home_of
from tests.bench.starting import prompt_s
from tests.peak import peak_mb
from tests.scenarios.growing import PER_TURN, RESULT, Growth, grow
from tests.scenarios.stage import THREAD

__all__ = ["ROWS"]

_KEEP_TURNS, _KEEP_ALL = 20, 10**6
_EARLY, _SHORT = 10, 12
_CHECKPOINTS_PER_STEP = 6
_SPAN = 10
"""Turns that a figure is the mean of: processor time of one is too little to be told."""


def _growth(ground: Ground) -> Iterator[Figure]:
    steps = 240 if ground.quick else 1_000
    growth = asyncio.run(grow(ground.fresh("pruned") / "agent.db", steps, _KEEP_TURNS))
    cuts = [turn for turn in range(1, len(growth.rows)) if _is_cut(growth, turn)]
    first, last = cuts[0], cuts[-1]
    page = 4096 / PER_TURN
    late, early = (Spread.one(growth.pages[turn] / turn * page) for turn in (last, _EARLY // PER_TURN))
    yield Figure(f"bytes of a step, {steps} steps", late, "bytes", 1.3, early, f"{_EARLY} steps")
    new = Spread.one(growth.bytes_per_step(first, last))
    yield Figure(f"bytes of a step, {steps} steps", new, "bytes", 4, Spread.one(RESULT), "what is new in it")
    rows = (Spread.one(_state_rows(growth, turn)) for turn in (last, first))
    yield Figure(f"rows of the state, {steps} steps", next(rows), "rows", 1.1, next(rows), "60 steps")
    work = (Spread.one(_cpu_ms(growth, turn)) for turn in (-1 - _SPAN, 2))
    yield Figure(f"processor time of a step, {steps} steps", next(work), "ms", 1.5, next(work), f"{_EARLY} steps")


def _is_cut(growth: Growth, turn: int) -> bool:
    return growth.rows[turn]["checkpoints"] < growth.rows[turn - 1]["checkpoints"]


def _state_rows(growth: Growth, turn: int) -> int:
    return growth.rows[turn]["checkpoints"] + growth.rows[turn]["writes"]


def _cpu_ms(growth: Growth, first_turn: int) -> float:
    return sum(growth.cpu_s[first_turn:][:_SPAN]) / _SPAN / PER_TURN * 1000


def _resume(ground: Ground) -> Iterator[Figure]:
    steps = 240 if ground.quick else 1_000
    folder = ground.fresh("resume")
    env = home_of(folder)
    long, short = _grown(folder, steps, _KEEP_TURNS), _grown(folder, _EARLY, _KEEP_TURNS)
    ours, reference = pairs(
        lambda: prompt_s(_resuming(long), folder, env), lambda: prompt_s(_resuming(short), folder, env), ground.runs
    )
    yield Figure(f"chat resumed to its prompt, {steps} steps", ours, "s", 1.5, reference, f"{_EARLY} steps")
    ours, reference = pairs(partial(_memory_mb, long, folder), partial(_memory_mb, short, folder), 3)
    yield Figure(f"memory of a thread that continues, {steps} steps", ours, "MB", 1.3, reference, f"{_EARLY} steps")


def _grown(folder: Path, steps: int, keep_turns: int) -> Path:
    database = folder / f"steps-{steps}.db"
    asyncio.run(grow(database, steps, keep_turns))
    return database


def _resuming(database: Path) -> Sequence[str]:
    return ("resume", THREAD, "--db", str(database))


def _memory_mb(database: Path, folder: Path) -> float:
    """What a process needs at most that opens the thread and plays one more turn."""
    command = [*AGENT, "run", "hello", "--resume", THREAD, "--workspace", str(folder), "--db", str(database)]
    code, most = peak_mb(command, env=home_of(folder), folder=folder)
    if code:
        raise RuntimeError(f"the thread did not go on: exit code {code}")
    return most


def _looking(ground: Ground) -> Iterator[Figure]:
    """The commands that look at a thread, on one of ten thousand checkpoints against one of a few."""
    checkpoints = 1_000 if ground.quick else 10_000
    folder = ground.fresh("looking")
    long = _grown(folder, checkpoints // _CHECKPOINTS_PER_STEP, _KEEP_ALL)
    short = _grown(folder, _SHORT, _KEEP_ALL)
    commands: Mapping[str, tuple[tuple[str, ...], float]] = {
        "inspect": (("inspect", THREAD), 1.5),
        "threads show": (("threads", "show", THREAD), 3),
        # It prints a line for each: that is its work.
        "history": (("history", THREAD), 10),
        "run --resume": (("run", "--resume", THREAD, "--workspace", str(folder)), 1.5),
    }
    for name, (command, target) in commands.items():
        ours, reference = in_turns(
            [*AGENT, *command, "--db", str(long)],
            [*AGENT, *command, "--db", str(short)],
            home_of(folder),
            ground.runs,
        )
        yield Figure(f"{name}, {checkpoints} checkpoints", ours, "s", target, reference, f"{_SHORT} steps")


ROWS = (Row("growth", _growth), Row("resume", _resume), Row("looking", _looking))
