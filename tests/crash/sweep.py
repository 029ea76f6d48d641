"""The kill sweep: kill the product at every crash point, twice in a row, and at random times; check each trial.

python -m tests.crash.sweep --kills N     print kills per crash point, violations and avoidable interrupts
"""

import argparse
import os
import pickle
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.ablations import ABLATIONS
from tests.crash.checker import avoidable, violations
from tests.crash.kill_run import Plan, live, warm_up
from tests.crash.scenes import SCENES, Scene
from tests.crash.services import web_site
from tests.crash.world import World

__all__ = ["Tally", "crash_points", "main", "sweep", "trial"]

_RUNS_UNTIL_STUCK = 12
"""Runs after which a trial that has not finished counts as stuck."""


_SOON = 40
"""Crash points within which every second kill but the far ones comes."""

_AT_ONCE = 4
"""Trials at the same time; a run mostly waits for the disk."""


@dataclass
class Tally:
    """What came of the trials."""

    kills: Counter[str] = field(default_factory=Counter)
    """Per label of the crash point, or "random time"."""
    trials: int = 0
    violations: list[str] = field(default_factory=list)
    avoidable: list[str] = field(default_factory=list)

    def add(self, world: World) -> None:
        """Check a finished trial."""
        self.trials += 1
        self.violations += violations(world)
        self.avoidable += avoidable(world)

    def join(self, other: "Tally") -> None:
        """Add another part's count."""
        self.kills += other.kills
        self.trials += other.trials
        self.violations += other.violations
        self.avoidable += other.avoidable


def crash_points(scene: Scene, folder: Path) -> list[str]:
    """The labels of the points that an undisturbed run of this scene passes, in order."""
    world, record = World(folder), folder / "points"
    world.create()
    with web_site(scene, world):
        live(world, scene, Plan(record=record))
    found = violations(world)
    if found:
        raise AssertionError(f"{scene.name!r} goes wrong undisturbed: {found}")
    return record.read_text().splitlines()


def trial(scene: Scene, plans: list[Plan], folder: Path, tally: Tally, labels: list[str]) -> None:
    """Runs with these plans, then undisturbed ones until the scene is over; then the check."""
    world = World(folder)
    world.create()
    missing = plans[-1].ablation
    later = Plan(ablation=missing if missing and ABLATIONS[missing].lasts else None)
    with web_site(scene, world):
        for plan in [*plans, *[later] * _RUNS_UNTIL_STUCK]:
            code = live(world, scene, plan)
            if code < 0:
                at = plan.kill_at or 0
                is_known = plan is plans[0] and 0 < at <= len(labels)
                tally.kills[labels[at - 1] if is_known else "later or random"] += 1
            elif code == 0:
                break
    tally.add(world)


def plans_for(kills: int, points: list[tuple[Scene, int]], seed: int) -> Iterator[tuple[Scene, list[Plan]]]:
    """Each point once, or a sample of them; then double kills and random times until there are enough.

    A second kill comes soon after the first, or anywhere in what a whole run passes.
    """
    chance = random.Random(seed)
    whole = Counter(scene.name for scene, _ in points)
    order = chance.sample(points, min(kills, len(points)))
    yield from ((scene, [Plan(kill_at=point)]) for scene, point in order)
    left = kills - len(order)
    while left > 0:
        scene, point = chance.choice(points)
        if chance.random() < 0.5:
            reach = chance.choice((_SOON, whole[scene.name]))
            yield scene, [Plan(kill_at=point), Plan(kill_at=chance.randint(1, reach))]
            left -= 2
        else:
            yield scene, [Plan(kill_after_s=chance.uniform(0.0, 0.4))]
            left -= 1


def sweep(
    kills: int | None, seed: int, scenes: tuple[Scene, ...] = SCENES, *, most_per_label: int | None = None
) -> Tally:
    """Run the trials, several at once, in throw-away folders; a trial that breaks a promise keeps its folder.

    Args:
        kills: so many are tried, of which some come too late; None for one at each of the points.
        most_per_label: only so many points of each label, spread over the run; None for all.
    """
    root = Path(tempfile.mkdtemp(prefix="kill-sweep-"))
    world = World(root / "warm-up")
    world.create()
    warm_up(world, SCENES[0])
    labels = {scene.name: crash_points(scene, root / f"clean-{number}") for number, scene in enumerate(scenes)}
    points = [(scene, point) for scene in scenes for point in _spread(labels[scene.name], most_per_label)]
    trials = list(enumerate(plans_for(len(points) if kills is None else kills, points, seed)))
    shards = [_start_shard(trials[shard::_AT_ONCE], root, labels) for shard in range(_AT_ONCE)]
    tally = Tally()
    for child, result in shards:
        _, status = os.waitpid(child, 0)
        if status:
            raise AssertionError(f"a part of the sweep ended with {os.waitstatus_to_exitcode(status)}")
        tally.join(pickle.loads(result.read_bytes()))  # noqa: S301 - written by our own child
    if not tally.violations:
        shutil.rmtree(root)
    return tally


def _spread(labels: list[str], most: int | None) -> list[int]:
    """The numbers, from 1, of at most so many points of each label: the first, the last, and some between."""
    if most is None:
        return list(range(1, len(labels) + 1))
    places = {label: [number for number, one in enumerate(labels, 1) if one == label] for label in labels}
    return sorted(
        {of[round(part * (len(of) - 1) / max(most - 1, 1))] for of in places.values() for part in range(most)}
    )


def _start_shard(
    trials: list[tuple[int, tuple[Scene, list[Plan]]]], root: Path, labels: dict[str, list[str]]
) -> tuple[int, Path]:
    result = root / f"result-{trials[0][0] if trials else 'none'}"
    child = os.fork()
    if child:
        return child, result
    code = 1
    try:
        tally = Tally()
        for number, (scene, plans) in trials:
            _try(scene, plans, root / f"trial-{number}", tally, labels[scene.name])
        result.write_bytes(pickle.dumps(tally))
        code = 0
    except BaseException:  # noqa: BLE001 - a forked child must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)


def _try(scene: Scene, plans: list[Plan], folder: Path, tally: Tally, labels: list[str]) -> None:
    before = len(tally.violations)
    trial(scene, plans, folder, tally, labels)
    if len(tally.violations) == before:
        shutil.rmtree(folder)
    else:
        print(f"{folder} {scene.name!r} {plans}: {tally.violations[before:]}", flush=True)  # noqa: T201 - a report


def main(arguments: list[str]) -> int:
    """The command line; exit 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2000, help="how many runs to kill")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="repeat a sweep")
    parser.add_argument("--scene", default="", help="only scenes whose name holds this")
    options = parser.parse_args(arguments)
    tally = sweep(options.kills, options.seed, tuple(scene for scene in SCENES if options.scene in scene.name))
    for label, count in sorted(tally.kills.items()):
        print(f"{count:6d}  {label}")  # noqa: T201 - a report
    print(f"seed: {options.seed}")  # noqa: T201 - a report
    print(f"trials: {tally.trials}")  # noqa: T201 - a report
    print(f"kills: {tally.kills.total()}")  # noqa: T201 - a report
    print(f"avoidable interrupts: {len(tally.avoidable)}")  # noqa: T201 - a report
    print(f"violations: {len(tally.violations)}")  # noqa: T201 - a report
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
