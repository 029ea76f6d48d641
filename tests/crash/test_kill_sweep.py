"""The quick form of the kill sweep; `make sweep KILLS=2000` is the long one."""

import random
from collections import Counter

import pytest

from tests.crash import foreign
from tests.crash.scenes import SCENES
from tests.crash.sweep import Tally, sweep

pytestmark = pytest.mark.slow

_SAMPLED_KILLS = 40


def promises_of(tally: Tally) -> tuple[list[str], list[str]]:
    return tally.violations, tally.avoidable


@pytest.mark.timeout(600)
def test_killed_at_every_kind_of_crash_point_of_a_scene_no_promise_is_broken() -> None:
    tally = sweep(None, seed=1, scenes=SCENES[:1], most_per_label=2)

    assert promises_of(tally) == ([], [])
    assert tally.kills.total() >= 60


@pytest.mark.timeout(600)
def test_killed_at_a_sample_of_the_points_of_the_other_scenes_no_promise_is_broken() -> None:
    tally = sweep(_SAMPLED_KILLS, seed=2, scenes=SCENES[1:])

    assert promises_of(tally) == ([], [])


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_killed_two_thousand_times_no_promise_is_broken() -> None:
    # Some trials aim at an instant that their run does not reach, so more are asked for.
    tally = sweep(2300, seed=random.randrange(2**32))

    assert promises_of(tally) == ([], [])
    assert tally.kills.total() >= 2000


_BROKEN = ("calls run twice", "outcomes lost", "invalid histories", "stuck", "failed runs")


def broken_promises(kills: int, seed: int, *, is_durable: bool = True) -> Counter[str]:
    total: Counter[str] = sum(foreign.sweep(kills, seed, is_durable=is_durable).values(), Counter())
    assert total["kills"] >= kills
    return Counter({name: total[name] for name in _BROKEN if total[name]})


def test_killed_anywhere_a_foreign_graph_with_durable_calls_breaks_no_promise() -> None:
    assert broken_promises(30, seed=3) == {}


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_killed_hundreds_of_times_only_a_foreign_graph_without_durable_calls_runs_one_twice() -> None:
    assert broken_promises(600, seed=random.randrange(2**32)) == {}
    assert broken_promises(200, seed=5, is_durable=False).keys() == {"calls run twice"}
