"""The quick form of the soak; `python -m tests.soak` is the long one."""

import random
from pathlib import Path

import pytest

from tests.soak.soak import soak


@pytest.mark.timeout(240)
def test_a_short_soak_with_one_kill_breaks_no_promise(tmp_path: Path) -> None:
    result = soak(tmp_path / "world", steps=20, kills=1, seed=1)

    assert (result.broken, result.kills, result.steps >= 20) == ((), 1, True)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_after_three_hundred_steps_no_promise_is_broken_and_memory_and_database_grow_no_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = soak(tmp_path / "world", steps=300, kills=12, seed=random.randrange(2**32))
    with capsys.disabled():
        print(f"\n{result}")  # noqa: T201 - the one line it is run for

    (warm_kb, end_kb), (first, last) = result.memory_kb, result.bytes_per_step
    assert (result.broken, result.kills >= 6) == ((), True)
    assert end_kb <= 1.15 * warm_kb
    assert last <= 1.3 * first
