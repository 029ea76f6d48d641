"""Many sessions at once on one database, while the model takes its time."""

import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.bench.figures import Figure, Row, Spread
from tests.bench.ground import Ground, home_of
from tests.bench.steps import book, reads
from tests.bench.timing import AGENT
from tests.fakes.openai_server import FakeOpenAI, Reply

__all__ = ["ROWS"]

_LATENCY_S = 0.5


class _Meeting(FakeOpenAI):
    """Answers nobody before all have asked once, so that nobody's start is measured."""

    def __init__(self, replies: list[Reply], expected: int) -> None:
        self._all_here = threading.Barrier(expected)
        super().__init__(replies, by_history=True)

    def answer(self, raw: bytes, headers: Mapping[str, str]) -> Reply:
        """Wait at the first request, note all others."""
        reply = super().answer(raw, headers)
        if reply is self.replies[0]:
            self._all_here.wait(timeout=300)
        return reply


def _at_once(ground: Ground) -> Iterator[Figure]:
    steps = 10 if ground.quick else 20
    rounds = [
        (_steps_per_s(ground, 8, steps), _steps_per_s(ground, 1, steps)) for _ in range(1 if ground.quick else 3)
    ]
    eight, one = (Spread.of([both[side] for both in rounds]) for side in (0, 1))
    yield Figure("8 sessions at once, model takes 0.5 s", eight, "steps/s", 6, one, "one session", is_least=True)
    _steps_per_s(ground, 32, steps)
    yield Figure("32 sessions at once, sessions that failed", Spread.one(0), "", 0)


def _steps_per_s(ground: Ground, sessions: int, steps: int) -> float:
    folder = ground.fresh("sessions")
    book(folder, steps)
    replies = [replace(reply, delay_s=_LATENCY_S) for reply in reads(steps)]
    with _Meeting(replies, sessions) as server:
        running = [_start(folder, server, number) for number in range(sessions)]
        ended = [(one.communicate(timeout=600), one.returncode) for one in running]
        came = [request.at for request in server.requests]
    if failed := [said[1] for said, code in ended if code != 0]:
        raise RuntimeError(f"{len(failed)} of {sessions} sessions failed: {failed[0]!r}")
    return sessions * steps / (came[-1] - came[sessions - 1])


def _start(folder: Path, server: FakeOpenAI, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*AGENT, "run", "go", "--thread", f"session-{number}", "--workspace", str(folder)],
        env=home_of(folder, server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


ROWS = (Row("sessions", _at_once),)
