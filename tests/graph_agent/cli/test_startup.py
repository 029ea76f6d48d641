import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.cli.headless.report import failure_report
from graph_agent.cli.startup import parse_run_options, result_on_signal

_CUT = """
import os, signal, sys
from graph_agent.cli.startup import result_on_signal
with result_on_signal(sys.argv[1], "t1"):
    os.kill(os.getpid(), int(sys.argv[2]))
"""

_CUT_AS_IT_LOADS = """
import os, signal, sys

class End:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv.pop()))

sys.meta_path.insert(0, End())
from graph_agent.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_run_that_is_ended_before_it_began_prints_its_object(output: str, number: signal.Signals) -> None:
    event = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    report = {**event, **failure_report("stopped", "ended by a signal", "t1")}
    as_it_loads = ("run", "--thread", "t1", f"--output={output}", "x")
    for script, arguments in ((_CUT, (output,)), (_CUT_AS_IT_LOADS, as_it_loads)):
        cut = subprocess.run(
            [sys.executable, "-c", script, *arguments, str(int(number))],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )

        assert (cut.returncode, json.loads(cut.stdout)) == (128 + number, report)


@pytest.mark.parametrize("output", ["text", "json"])
def test_afterwards_signals_mean_what_they_meant_before(output: str) -> None:
    before = signal.getsignal(signal.SIGTERM)

    with result_on_signal(output, None):
        within = signal.getsignal(signal.SIGTERM)

    assert (signal.getsignal(signal.SIGTERM), within == before) == (before, output == "text")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("run x --output json", ("json", None)),
        ("--debug run --thread t1 --output=stream-json x", ("stream-json", "t1")),
        ("run x --output text", ("text", None)),
        ("run -- --output json", ("text", None)),
        ("run x --output", ("text", None)),
        ("calls --output json", ("text", None)),
        ("", ("text", None)),
    ],
)
def test_what_a_run_is_to_print_is_known_before_its_line_is_read(line: str, asked: tuple[str, str | None]) -> None:
    assert parse_run_options(line.split()) == asked
