import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.cli.report import failure_report
from graph_agent.cli.starting import told_if_cut

_CUT = """
import os, signal, sys
from graph_agent.cli.starting import told_if_cut
with told_if_cut(sys.argv[1], "t1"):
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_run_that_is_ended_before_it_began_prints_its_object(output: str, number: signal.Signals) -> None:
    root = Path(__file__).parents[3]
    cut = subprocess.run(
        [sys.executable, "-c", _CUT, output, str(int(number))],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )

    event = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    report = {**event, **failure_report("stopped", "ended by a signal", "t1")}
    assert (cut.returncode, json.loads(cut.stdout)) == (128 + number, report)


@pytest.mark.parametrize("output", ["text", "json"])
def test_afterwards_signals_mean_what_they_meant_before(output: str) -> None:
    before = signal.getsignal(signal.SIGTERM)

    with told_if_cut(output, None):
        within = signal.getsignal(signal.SIGTERM)

    assert (signal.getsignal(signal.SIGTERM), within == before) == (before, output == "text")
