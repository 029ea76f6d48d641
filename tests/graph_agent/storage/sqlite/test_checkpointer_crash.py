import json
import subprocess
import sys
from pathlib import Path

from tests.graph_agent.storage.sqlite.life import ROOT


def test_a_kill_before_any_statement_loses_nothing_acknowledged_and_leaves_everything_fitting(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.graph_agent.storage.sqlite.sweep", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=50).stdout

    lives = [json.loads(line) for line in output.splitlines()]

    lost = [life for life in lives if set(life["acknowledged"]) - set(life["there"])]
    unfitting = [life for life in lives if not life["fits"]]
    half_done = [life for life in lives if len(life["there"]) > len(life["acknowledged"]) + 1]
    assert (lost, unfitting, half_done) == ([], [], [])
    assert [life["survived"] for life in lives] == [False] * (len(lives) - 1) + [True]
    assert len(lives) > 30
    assert lives[-1]["there"] == ["checkpoint 1", "checkpoint 2", "claim", "decision", "finish", "writes"]
