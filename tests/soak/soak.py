"""The soak: hundreds of steps on one thread with everything that can happen to it, and what must hold afterwards.

python -m tests.soak --steps N --kills N --seed N     exit 1 if a promise was broken; its folder is then kept
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
from tests.soak.person import LEFT
from tests.soak.unreliable_server import UnreliableServer

__all__ = ["SoakResult", "soak"]

_MAX_RUNS = 60
"""Processes after which a soak that has not finished counts as stuck."""
_LAST_KILL_AT = 0.6
"""The part of the steps up to which processes are killed; the last one is long enough to measure its memory."""
_STOPPED = "Cancelled: stopped by user"
"""The model's result of a question that was answered and then stopped: no broken promise."""
_SETTINGS = """keep_turns = 3
sandbox = "off"
[model]
context_window = 32000
"""


@dataclass(frozen=True)
class SoakResult:
    """What happened, and which promises were broken."""

    seed: int
    steps: int
    runs: int
    kills: int
    errors: int
    too_long: int
    summaries: int
    questions: int
    memory_kb: tuple[int, int]
    """Of the last process: after its first third, and at its end."""
    bytes_per_step: tuple[float, float]
    """Growth of the database in the first third of the steps, and in the last."""
    broken: tuple[str, ...]

    def __str__(self) -> str:
        (warm, end), (first, last) = self.memory_kb, self.bytes_per_step
        return (
            f"soak: seed {self.seed}, {self.steps} steps, {self.runs} runs, {self.kills} kills, "
            f"{self.errors} errors, {self.too_long} too long, {self.summaries} summaries, "
            f"{self.questions} questions, memory {warm} -> {end} kB, "
            f"database {first:.0f} -> {last:.0f} bytes per step, {len(self.broken)} broken promises"
        )


def soak(folder: Path, *, steps: int, kills: int, seed: int) -> SoakResult:
    """Let processes work on one thread, kill some, and check what they left."""
    world = World(folder)
    world.create()
    (world.database.parent / "config.toml").write_text(_SETTINGS)
    chance = random.Random(seed)
    kills_at = sorted(chance.randint(steps // 20, int(steps * _LAST_KILL_AT)) for _ in range(kills))
    killed = runs = 0
    with UnreliableServer(world, seed) as server:
        for runs in range(1, _MAX_RUNS + 1):  # noqa: B007 - part of the result
            code = _run(world, server, steps, chance, kills_at)
            killed += code < 0
            if code not in (LEFT, -9):
                break
        broken = [] if code == 0 else [f"stuck: the last process ended with {code}"]
        broken += [f"I6: {fault}" for fault in server.faults]
        broken += [line for line in violations(world) if _STOPPED not in line]
        broken += _forgotten_questions(world)
        sizes = world.notes("size")
        memory = [note["memory_kb"] for note in sizes if note["pid"] == sizes[-1]["pid"]]
        total = sizes[-1]["steps"]
        return SoakResult(
            seed=seed,
            steps=total,
            runs=runs,
            kills=killed,
            errors=server.errors,
            too_long=len(server.too_long),
            summaries=server.summaries,
            questions=len({(note["call"], note["question"]) for note in world.notes("asked")}),
            memory_kb=(memory[len(memory) // 3], memory[-1]),
            bytes_per_step=(
                _growth([note for note in sizes if note["steps"] <= total / 3]),
                _growth([note for note in sizes if note["steps"] >= total * 2 / 3]),
            ),
            broken=tuple(broken),
        )


def _run(world: World, server: UnreliableServer, steps: int, chance: random.Random, kills_at: list[int]) -> int:
    """One process until its end, or until shortly after the next step to kill at; its exit code."""
    home = {"GRAPH_AGENT_HOME": str(world.database.parent), "OPENAI_API_KEY": "sk-test"}
    model = {"GRAPH_AGENT_BASE_URL": server.base_url, "GRAPH_AGENT_MODEL": "fake"}
    arguments = ["-m", "tests.soak.person", str(world.folder), str(steps), str(chance.getrandbits(32))]
    with (world.folder / "output").open("a") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **home, **model},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
        try:
            if kills_at:
                kill_at = max(kills_at[0], server.steps + 1)
                while server.steps < kill_at and process.poll() is None:
                    time.sleep(0.01)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(chance.uniform(0, 0.4))
                kills_at.pop(0)
                process.kill()
            return process.wait()
        finally:
            process.kill()
            process.wait()


def _forgotten_questions(world: World) -> list[str]:
    """I3: a question that was open when a process ended is asked first by the next one."""
    still: set[tuple[str, str]] = set()
    expected: set[tuple[str, str]] = set()
    forgotten: list[str] = []
    for note in world.notes("run begins", "asked", "answering", "stops", "size", "finished"):
        question = (note.get("call", ""), note.get("question", ""))
        match note["kind"]:
            case "run begins":
                expected = expected | still
            case "asked":
                still.add(question)
                expected.discard(question)
            case "answering":
                still.discard(question)
                forgotten += [f"I3: {call} was not asked about again" for call, _ in expected]
                expected = set()
            case "stops" | "finished":
                if note["kind"] == "finished":
                    forgotten += [f"I3: {call} was never asked about again" for call, _ in expected]
                still, expected = set(), set()
    return forgotten


def _growth(sizes: list[dict[str, Any]]) -> float:
    """Bytes per step of the database, which was pruned before each note."""
    first, last = sizes[0], sizes[-1]
    grown: int = last["database"] - first["database"]
    steps: int = last["steps"] - first["steps"]
    return grown / max(steps, 1)
