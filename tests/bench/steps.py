"""What a step costs beside the model, and how many sessions can work at once while the model takes its time.

The cost is an agent's time between two requests, less that of a bare loop.
"""

import json
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tests.bench.figures import AGENT, PYTHON, Figure, Row, Spread
from tests.bench.ground import Ground, home_of
from tests.fakes.openai_server import TC, FakeOpenAI, Reply

__all__ = ["ROWS"]

_RESULT_LINES = 50
_LINE = "{:07} a line of a book, with words enough to make eighty characters of it together\n"
_AROUND = 8
_EARLY, _MIDDLE, _LATE = 10, 300, 1_000
_LATENCY_S = 0.5
_PLAIN = "create_agent, approvals, SqliteSaver, durability=sync"

Command = Callable[[FakeOpenAI, Path, int], Sequence[str]]


class _Clock(FakeOpenAI):
    """Notes when each request came; keeps the bodies of a few only, since those of a long thread are large."""

    def __init__(self, replies: Sequence[Reply], kept: frozenset[int]) -> None:
        self.came: list[float] = []
        self.kept: dict[int, str] = {}
        self._wanted = kept
        super().__init__(replies)

    def answer(self, raw: bytes, headers: Mapping[str, str]) -> Reply:
        """As the script says."""
        number = len(self.came)
        self.came.append(time.perf_counter())
        if number in self._wanted:
            self.kept[number] = json.dumps(json.loads(raw))
        return self.replies[number] if number < len(self.replies) else self.after


@dataclass(frozen=True)
class _Played:
    came: Sequence[float]
    kept: Mapping[int, str]

    def step_ms(self, step: int) -> float:
        """Median of the steps around this one."""
        gaps = [self.came[at + 1] - self.came[at] for at in range(step - _AROUND, step + _AROUND)]
        return statistics.median(gaps) * 1000


def _book(folder: Path, steps: int) -> None:
    """A file that each step reads four kilobytes further into."""
    lines = (_LINE.format(number) for number in range(steps * _RESULT_LINES + _RESULT_LINES))
    (folder / "book.txt").write_text("".join(lines), encoding="utf-8")


def _reads(steps: int) -> list[Reply]:
    """A model that reads the book to its end."""
    places = (
        {"file_path": "book.txt", "offset": at * _RESULT_LINES + 1, "limit": _RESULT_LINES} for at in range(steps)
    )
    return [TC(f"call-{number}", "read_file", place) for number, place in enumerate(places)]


def _ours(server: FakeOpenAI, folder: Path, steps: int) -> Sequence[str]:
    return [*AGENT, "run", "go", "--max-steps", str(steps + 10), "--workspace", str(folder)]


def _plain(server: FakeOpenAI, folder: Path, steps: int) -> Sequence[str]:
    return [PYTHON, "-m", "tests.bench.references", "plain", server.base_url, str(folder / "plain.db"), str(folder)]


def _own_ms(ground: Ground, command: Command, marks: Sequence[int]) -> dict[int, float]:
    """The own time of the steps around each mark."""
    folder, steps = ground.fresh("steps"), marks[-1] + _AROUND + 2
    _book(folder, steps)
    around = frozenset(at for mark in marks for at in range(mark - _AROUND, mark + _AROUND + 1))
    with _Clock(_reads(steps), around) as server:
        _run(command(server, folder, steps), folder, server)
        played = _Played(tuple(server.came), dict(server.kept))
    return {mark: played.step_ms(mark) - _bare_ms(folder, played, mark) for mark in marks}


def _bare_ms(folder: Path, played: _Played, mark: int) -> float:
    numbers = range(mark - _AROUND, mark + _AROUND + 1)
    recorded = folder / f"recorded-{mark}.jsonl"
    # The first one is sent twice: making the client and its connection is no part of a step.
    recorded.write_text("\n".join(played.kept[at] for at in (numbers[0], *numbers)), encoding="utf-8")
    with _Clock(_reads(len(numbers) + 1), frozenset()) as server:
        _run([PYTHON, "-m", "tests.bench.references", "bare", server.base_url, str(recorded)], folder, server)
        return _Played(server.came[1:], {}).step_ms(_AROUND)


def _run(command: Sequence[str], folder: Path, server: FakeOpenAI) -> None:
    subprocess.run(command, env=home_of(folder, server), check=True, capture_output=True, timeout=1_800)


def _against_plain(ground: Ground) -> Iterator[Figure]:
    middle = 60 if ground.quick else _MIDDLE
    marks = (_EARLY, middle)
    runs = [
        (_own_ms(ground, _ours, marks), _own_ms(ground, _plain, marks)) for _ in range(1 if ground.quick else 3)
    ]
    for mark, target in zip(marks, (1.0, 0.3), strict=True):
        ours, plain = (Spread.of([played[side][mark] for played in runs]) for side in (0, 1))
        yield Figure(f"own time of a step, step {mark}", ours, "ms", target, plain, _PLAIN)


def _late(ground: Ground) -> Iterator[Figure]:
    late = 100 if ground.quick else _LATE
    runs = [_own_ms(ground, _ours, (_EARLY, late)) for _ in range(1 if ground.quick else 3)]
    ours, early = (Spread.of([played[mark] for played in runs]) for mark in (late, _EARLY))
    yield Figure(f"own time of a step, step {late}", ours, "ms", 1.5, early, f"step {_EARLY}")


def _stable(ground: Ground) -> Iterator[Figure]:
    """How much of each request the next one begins with: what a provider need not read again."""
    folder, steps = ground.fresh("steps"), 20
    _book(folder, steps)
    with _Clock(_reads(steps), frozenset(range(steps))) as server:
        _run(_ours(server, folder, steps), folder, server)
        bodies = [server.kept[number] for number in range(steps)]
    shares = [100 * _common(one, later) / len(one) for one, later in pairwise(bodies)]
    yield Figure("bytes of a request that the next one begins with", Spread.of(shares), "%", 99.9, is_least=True)


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), len(one))


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
    _book(folder, steps)
    replies = [replace(reply, delay_s=_LATENCY_S) for reply in _reads(steps)]
    with _Meeting(replies, sessions) as server:
        running = [_start_session(folder, server, number) for number in range(sessions)]
        ended = [(one.communicate(timeout=600), one.returncode) for one in running]
        came = [request.at for request in server.requests]
    if failed := [said[1] for said, code in ended if code != 0]:
        raise RuntimeError(f"{len(failed)} of {sessions} sessions failed: {failed[0]!r}")
    return sessions * steps / (came[-1] - came[sessions - 1])


def _start_session(folder: Path, server: FakeOpenAI, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*AGENT, "run", "go", "--thread", f"session-{number}", "--workspace", str(folder)],
        env=home_of(folder, server),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


ROWS = (
    Row("step", _against_plain),
    Row("late-step", _late),
    Row("stable", _stable),
    Row("sessions", _at_once),
)
