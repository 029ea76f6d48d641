"""Times ours and the reference in turns, so that both meet the same machine."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.bench.figures import Spread

__all__ = ["AGENT", "PYTHON", "in_turns", "pairs", "process_s", "seconds"]

PYTHON = sys.executable
AGENT = (PYTHON, "-m", "graph_agent")


def pairs(ours: Callable[[], float], reference: Callable[[], float], runs: int) -> tuple[Spread, Spread]:
    """Measure both in turns; the first of each warms the caches and does not count."""
    mine, theirs = zip(*[(ours(), reference()) for _ in range(runs + 1)][1:], strict=True)
    return Spread.of(mine), Spread.of(theirs)


def in_turns(
    ours: Sequence[str], reference: Sequence[str], env: Mapping[str, str], runs: int
) -> tuple[Spread, Spread]:
    """Seconds of two commands."""
    return pairs(lambda: process_s(ours, env), lambda: process_s(reference, env), runs)


def process_s(command: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> float:
    """How long a process takes, from its start to its end."""
    return seconds(
        lambda: subprocess.run(
            command, env=env, check=True, cwd=cwd, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
    )


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
