"""The checker sees: with a safeguard taken out, kills break the promise that it stood for."""

import re
from pathlib import Path

import pytest

from tests.crash.ablations import ABLATIONS, Ablation
from tests.crash.kill_run import Plan
from tests.crash.sweep import Tally, trial


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_without_the_safeguard_the_checker_reports_the_broken_promise(ablation: Ablation, tmp_path: Path) -> None:
    missing, tally = ABLATIONS[ablation], Tally()
    expected = re.compile(missing.broken)

    for nth in range(1, 25):
        plan = Plan(kill_at=nth, kill_on=missing.die_at, ablation=ablation)
        trial(missing.scene, [plan], tmp_path / str(nth), tally, [])
        if any(expected.search(line) for line in tally.violations):
            return

    pytest.fail(f"nothing that fits {expected.pattern!r} in {tally.violations}")
