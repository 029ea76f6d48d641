"""The soak: hundreds of steps on one thread with everything that happens to one, and what must hold afterwards.

python -m tests.soak --steps N --kills N --seed N     exit 1 when a promise was broken; its folder is then kept
"""

import contextlib
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.checker import violations
from tests.crash.world import World
from tests.soak.life import LEFT
from tests.soak.moody_server import MoodyServer

__all__ = ["Soaked", "soak"]

_LIVES = 60
"""Lives after which a soak that has not finished counts as stuck."""
_LAST_KILL_AT = 0.6
"""Part of the steps: the life that follows is long enough for its memory to be judged."""
_STOPPED = "Cancelled: stopped by user"
"""What the model is told of a question that was answered and then stopped: no broken promise."""
_SETTINGS = """keep_turns = 3
sandbox = "off"
[model]
context_window = 32000
"""


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    seed: int
    steps: int
    lives: int
    kills: int
    moods: int
    too_long: int
    summaries: int
    questions: int
    memory_kb: tuple[int, int]
    """Of the last life: after its first third, and at its end."""
    bytes_per_step: tuple[float, float]
    """What the database grew by in the first third of the steps, and in the last."""
    broken: tuple[str, ...]

    def __str__(self) -> str:
        (warm, end), (first, last) = self.memory_kb, self.bytes_per_step
        return (
            f"soak: seed {self.seed}, {self.steps} steps, {self.lives} lives, {self.kills} kills, "
            f"{self.moods} errors, {self.too_long} too long, {self.summaries} summaries, "
            f"{self.questions} questions, memory {warm} -> {end} kB, "
            f"database {first:.0f} -> {last:.0f} bytes per step, {len(self.broken)} broken promises"
        )


def soak(folder: Path, *, steps: int, kills: int, seed: int) -> Soaked:
    """Let lives work on one thread, kill some, and look at what they left."""
    world = World(folder)
    world.create()
    (world.database.parent / "config.toml").write_text(_SETTINGS)
    chance = random.Random(seed)
    kills_at = sorted(chance.randint(steps // 20, int(steps * _LAST_KILL_AT)) for _ in range(kills))
    killed = lives = 0
    with MoodyServer(world, seed) as server:
        for lives in range(1, _LIVES + 1):  # noqa: B007 - told afterwards
            code = _live(world, server, steps, chance, kills_at)
            killed += code < 0
            if code not in (LEFT, -9):
                break
        broken = [] if code == 0 else [f"stuck: the last life ended with {code}"]
        broken += [f"I6: {fault}" for fault in server.faults]
        broken += [line for line in violations(world) if _STOPPED not in line]
        broken += _forgotten_questions(world)
        sizes = world.notes("size")
        return Soaked(
            seed=seed,
            steps=sizes[-1]["steps"],
            lives=lives,
            kills=killed,
            moods=server.moods,
            too_long=len(server.too_long),
            summaries=server.summaries,
            questions=len({(note["call"], note["question"]) for note in world.notes("asked")}),
            memory_kb=_memory(sizes),
            bytes_per_step=_growth(sizes),
            broken=tuple(broken),
        )


def _live(world: World, server: MoodyServer, steps: int, chance: random.Random, kills_at: list[int]) -> int:
    """One life to its end, or to the next step to kill at and a moment more; its exit code."""
    home = {"GRAPH_AGENT_HOME": str(world.database.parent), "OPENAI_API_KEY": "sk-test"}
    model = {"GRAPH_AGENT_BASE_URL": server.base_url, "GRAPH_AGENT_MODEL": "fake"}
    arguments = ["-m", "tests.soak.life", str(world.folder), str(steps), str(chance.getrandbits(32))]
    with (world.folder / "output").open("a") as output:
        life = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **home, **model},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
        try:
            if kills_at:
                _wait_for(server, kills_at[0], life)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return life.wait(chance.uniform(0, 0.4))
                kills_at.pop(0)
                life.kill()
            return life.wait()
        finally:
            life.kill()
            life.wait()


def _wait_for(server: MoodyServer, steps: int, life: "subprocess.Popen[bytes]") -> None:
    begun = server.steps
    while server.steps < max(steps, begun + 1) and life.poll() is None:
        time.sleep(0.01)


def _forgotten_questions(world: World) -> list[str]:
    """I3: what was asked and not answered when a life ended is what the next one asks first."""
    still: set[tuple[str, str]] = set()
    expected: set[tuple[str, str]] = set()
    forgotten: list[str] = []
    for note in world.notes("life begins", "asked", "answering", "stops", "size", "finished"):
        match note["kind"]:
            case "life begins":
                expected = expected | still
            case "asked":
                still.add(_question(note))
                expected.discard(_question(note))
            case "answering":
                still.discard(_question(note))
                if expected:
                    forgotten += [f"I3: {call} was not asked about again" for call, _ in expected]
                    expected = set()
            case "stops" | "finished":
                if note["kind"] == "finished":
                    forgotten += [f"I3: {call} was never asked about again" for call, _ in expected]
                still, expected = set(), set()
    return forgotten


def _question(note: dict[str, Any]) -> tuple[str, str]:
    return note["call"], note["question"]


def _memory(sizes: list[dict[str, Any]]) -> tuple[int, int]:
    last = [note["memory_kb"] for note in sizes if note["pid"] == sizes[-1]["pid"]]
    return last[len(last) // 3], last[-1]


def _growth(sizes: list[dict[str, Any]]) -> tuple[float, float]:
    """Between instants at rest, when the thread has been pruned."""
    total = sizes[-1]["steps"]
    early = [note for note in sizes if note["steps"] <= total / 3]
    late = [note for note in sizes if note["steps"] >= total * 2 / 3]
    return _slope(early[0], early[-1]), _slope(late[0], late[-1])


def _slope(first: dict[str, Any], last: dict[str, Any]) -> float:
    grown: int = last["database"] - first["database"]
    steps: int = last["steps"] - first["steps"]
    return grown / max(steps, 1)
