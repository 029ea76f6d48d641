"""What a row of the table consists of, and how ours and the reference are timed in turns on the same machine."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.ground import Ground

__all__ = ["AGENT", "PYTHON", "Figure", "Measure", "Row", "Spread", "in_turns", "pairs", "process_s", "seconds"]

PYTHON = sys.executable
AGENT = (PYTHON, "-m", "graph_agent")


@dataclass(frozen=True, slots=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one."""
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def one(cls, value: float) -> "Spread":
        """Of a thing that is counted, not timed."""
        return cls(value, value, value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    ours: Spread
    unit: str
    """Of ours and of the reference: s, ms, MB, bytes, rows or steps/s."""
    target: float
    reference: Spread | None = None
    against: str = ""
    """What the reference is; empty where ours is bounded by the target itself."""
    is_least: bool = False
    """Whether the target is the least that is promised, not the most."""

    @property
    def value(self) -> float:
        """What is held against the target."""
        return self.ours.median / self.reference.median if self.reference else self.ours.median

    @property
    def is_met(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.target if self.is_least else self.value <= self.target


Measure = Callable[[Ground], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Row:
    """One promise or a few that are measured together, chosen by name."""

    name: str
    measure: Measure


def pairs(ours: Callable[[], float], reference: Callable[[], float], runs: int) -> tuple[Spread, Spread]:
    """Measure both in turns; the first of each warms the caches and does not count."""
    mine, theirs = zip(*[(ours(), reference()) for _ in range(runs + 1)][1:], strict=True)
    return Spread.of(mine), Spread.of(theirs)


def in_turns(
    ours: Sequence[str], reference: Sequence[str], env: Mapping[str, str], runs: int
) -> tuple[Spread, Spread]:
    """Seconds of two commands."""
    return pairs(lambda: process_s(ours, env), lambda: process_s(reference, env), runs)


def process_s(command: Sequence[str], env: Mapping[str, str]) -> float:
    """How long a process takes, from its start to its end."""
    return seconds(
        lambda: subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    )


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
