"""Workers that are killed, paused and cut off: each task ends, and nothing runs twice without asking."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.crash.hosts import hosts_missing
from tests.crash.plain_workers import PlainTrial
from tests.crash.worker_faults import HOST_FAULTS, KINDS, clocks_missing, play_faults, report
from tests.crash.worker_trial import REPLIES, Trial
from tests.fakes.openai_server import FakeOpenAI
from tests.scenarios.command import Command


def play(folder: Path, seed: int, *, tasks: int, kills: int, workers: int) -> Trial:
    """One trial."""
    with FakeOpenAI(REPLIES, strict=True, by_history=True) as server:
        trial = Trial(Command(folder, server.base_url), random.Random(seed))
        for _ in range(tasks):
            trial.add()
        trial.run(kills, workers)
        trial.violations += trial.wrong_requests(server)
        return trial


def test_two_killed_workers_end_their_tasks_and_run_nothing_twice(tmp_path: Path) -> None:
    trial = play(tmp_path, 1, tasks=2, kills=3, workers=2)

    assert (trial.violations, trial.kills) == ([], 3)


_QUICK = (
    *("pause", "cut", "kill", "no connections", "kill", "short pause"),
    *("server killed", "kill", "server killed in a commit", "kill"),
)


@pytest.mark.timeout(170)
def test_workers_on_several_hosts_end_their_tasks_despite_ten_faults_and_run_nothing_twice(
    postgres_programs: Path, tmp_path: Path
) -> None:
    faults = play_faults(tmp_path, postgres_programs, _possible(_QUICK), 1, workers=4, tasks=5)

    assert faults.trial.violations == []
    assert [one.kind for one in faults.done] == _possible(_QUICK)


@pytest.mark.sweep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", [*KINDS, "wrong clocks"])
def test_workers_on_several_hosts_run_nothing_twice_however_often_a_fault_recurs(
    postgres_programs: Path, tmp_path: Path, kind: str
) -> None:
    clocks, planned = [0], [kind] * 40
    if kind == "wrong clocks":
        if missing := clocks_missing():
            pytest.skip(missing)
        clocks, planned = [0, 300, 0, -300], [*KINDS] * 5
    planned = _possible(planned)

    faults = play_faults(tmp_path, postgres_programs, planned, 1, workers=4, tasks=8, clocks=clocks)

    sys.stdout.write(f"{report(kind, faults)}\n")
    assert faults.trial.violations == []


def _possible(planned: Sequence[str]) -> list[str]:
    """Without the faults of hosts, where this machine can make none; that is printed."""
    missing = hosts_missing()
    if missing:
        sys.stdout.write(f"\nNo faults of hosts here: {missing}.\n")
    return [kind for kind in planned if not missing or kind not in HOST_FAULTS]


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_plain_langgraph_runs_calls_twice_in_the_same_sweep(postgres_programs: Path, tmp_path: Path) -> None:
    faults = play_faults(tmp_path, postgres_programs, ["kill"] * 40, 1, workers=4, tasks=8, kind=PlainTrial)

    sys.stdout.write(f"{report('kill, plain LangGraph', faults)}\n")
    assert [line for line in faults.trial.violations if "ran 2 times, allowed 1" in line]


@pytest.mark.sweep
@pytest.mark.timeout(3600)
def test_two_hundred_kills_of_three_workers_lose_no_task_and_run_nothing_twice(tmp_path: Path) -> None:
    trials = []
    for seed in range(10):
        (tmp_path / str(seed)).mkdir()
        trials.append(play(tmp_path / str(seed), seed, tasks=6, kills=20, workers=3))

    sys.stdout.write(f"{sum(trial.kills for trial in trials)} kills, {6 * len(trials)} tasks\n")
    assert [violation for trial in trials for violation in trial.violations] == []
    assert sum(trial.kills for trial in trials) >= 150
