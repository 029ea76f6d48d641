"""How long it takes to decide about a shell command: one never seen before, and the same once more."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figures import Figure, Row, Spread
from tests.bench.ground import Ground
from tests.fakes.toolbox_world import World

__all__ = ["ROWS"]

_LINES = (
    "git status --short",
    "ls -la src tests | head -{n}",
    "cd src && python -m pytest -q tests/test_{n}.py -x 2>&1 | tail -20",
    'for f in *.{n}; do wc -l "$f"; done',
    "grep -rn 'value {n}' . --include='*.py' | sort | uniq -c | sort -rn",
    "rm -rf build/{n} && mkdir -p build/{n} && cp -r src build/{n}/",
    "find . -name '*.{n}' -newer setup.py -exec sed -i 's/a/b/' {{}} +",
    "env A={n} bash -c 'make test && git commit -am \"work {n}\"'",
    "curl -fsSL https://example.org/{n}.tar.gz | tar xz -C /tmp/out{n}",
    "cat <<'END' > notes{n}.txt\nsome words\nEND",
)
_ALLOW = ["bash(git status:*)", "bash(ls:*)", "bash(pytest:*)", "read_file"]
_ASK = ["bash(git push:*)", "bash(curl:*)"]
_DENY = ["bash(rm -rf /:*)", "read_file(**/.env)"]


def _decisions(ground: Ground) -> Iterator[Figure]:
    new, repeated = asyncio.run(_times_ms(ground.fresh("judging"), 10 if ground.quick else 40))
    for what, times, target in (("new", new, 10), ("repeated", repeated, 0.5)):
        ordered = sorted(times)
        late = Spread(ordered[int(len(ordered) * 0.95)], ordered[0], ordered[-1])
        yield Figure(f"decision about a bash line, {what}, p95", late, "ms", target)


async def _times_ms(folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    world = World(folder, allow=_ALLOW, ask=_ASK, deny=_DENY)
    await world.plan("bash", command="true")
    lines = [line.format(n=number) for number in range(rounds) for line in _LINES]
    return [await _ms(world, line) for line in lines], [
        await _ms(world, lines[-1 - at % 10]) for at in range(len(lines))
    ]


async def _ms(world: World, line: str) -> float:
    began = time.perf_counter()
    await world.plan("bash", command=line)
    return (time.perf_counter() - began) * 1000


ROWS = (Row("policy", _decisions),)
