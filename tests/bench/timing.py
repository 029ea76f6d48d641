"""Times whole processes, ours and the reference in turns, so that both meet the same machine."""

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Comparison", "Contest", "compare"]


@dataclass(frozen=True, slots=True)
class Contest:
    """What is to be compared."""

    name: str
    ours: Sequence[str]
    reference: Sequence[str]
    target: float
    """Ours should take at most this many times the reference."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it; seconds are medians."""

    name: str
    ours_s: float
    reference_s: float
    target: float

    @property
    def ratio(self) -> float:
        """How many times the reference ours takes."""
        return self.ours_s / self.reference_s


def compare(contest: Contest, env: Mapping[str, str], runs: int = 9) -> Comparison:
    """Run both in turns; the first run of each warms the caches and does not count."""
    pairs = [(_seconds(contest.ours, env), _seconds(contest.reference, env)) for _ in range(runs + 1)][1:]
    ours, reference = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Comparison(contest.name, ours, reference, contest.target)


def _seconds(command: Sequence[str], env: Mapping[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(
        command, env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    return time.perf_counter() - begin
