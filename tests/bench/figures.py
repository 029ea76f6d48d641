"""What a row of the table comes to: ours, the reference, and what was promised. Measures nothing."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.bench.ground import Ground

__all__ = ["Figure", "Measure", "Row", "Spread"]


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
