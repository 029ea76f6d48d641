"""The programs of `examples/`, run and killed as their readers would."""

import importlib.util
import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.architecture.checkout import ROOT
from tests.scenarios.command import free_port, until

pytestmark = pytest.mark.slow


def run_program(path: str, folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a file of the checkout as a program, in a process that has loaded the libraries."""
    printed = folder / "printed"
    child = os.fork()
    if child == 0:
        code = 7
        try:
            os.chdir(folder)
            with printed.open("w") as sys.stdout:
                sys.argv = [path, *arguments]
                runpy.run_path(str(ROOT / path), run_name="__main__")
            code = 0
        except SystemExit as left:
            code = int(left.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed.read_text()


def test_the_example_is_killed_asks_and_ends_with_one_charge(tmp_path: Path) -> None:
    commands = (["pay"], ["resume"], ["done", "receipt 4711"])
    ended = [run_program("examples/durable_tools/charge_card.py", tmp_path, *command) for command in commands]

    assert [code for code, _ in ended] == [-signal.SIGKILL, 0, 0]
    assert "has no recorded outcome" in ended[1][1]
    assert "tool: receipt 4711" in ended[2][1]
    assert (tmp_path / "charges.txt").read_text() == "order 7: 49.00\n"


def test_the_demo_shows_two_charges_and_one(tmp_path: Path) -> None:
    code, printed = run_program("graph_agent/durable/demo.py", tmp_path, "--keep", "kept")

    assert (code, re.findall(r"charges on the card: (\d)", printed)) == (0, ["2", "1"])
    assert "the model receives 'receipt 4711'" in printed


def test_of_two_sub_graphs_only_the_one_that_was_killed_asks_and_both_order_once(tmp_path: Path) -> None:
    commands = ("start", "resume", "done")
    ended = [run_program("examples/sub_graph/orders.py", tmp_path, command) for command in commands]

    assert [code for code, _ in ended] == [-signal.SIGKILL, 0, 0]
    assert ended[1][1].count("has no recorded outcome") == 1
    assert ended[2][1] == (
        "the bakery delivers at 7\nThis call took effect; its result was lost.\norders: bakery, dairy\n"
    )


@contextmanager
def serving(folder: Path) -> Iterator[httpx.Client]:
    """The application of the example over HTTP, killed at the end."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "error"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples/approval_over_http")},
    )
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:

        def is_up() -> bool:
            try:
                return client.get("/openapi.json").status_code == 200
            except httpx.TransportError:
                return False

        try:
            until(is_up)
            yield client
        finally:
            server.kill()
            server.wait(timeout=30)


def run(client: httpx.Client, thread: str, **work: Any) -> Any:
    return client.post(f"/threads/{thread}/run", json=work).raise_for_status().json()


@pytest.mark.skipif(
    importlib.util.find_spec("fastapi") is None,
    reason="NOT TESTED: fastapi is not installed; `make` installs what requirements-dev.txt names",
)
def test_a_question_over_http_survives_a_kill_and_its_call_runs_once(tmp_path: Path) -> None:
    transfers = tmp_path / "transfers.txt"
    with serving(tmp_path) as client:
        asked = run(client, "t", text="pay ann 5")
    with ThreadPoolExecutor() as pool, serving(tmp_path) as client:
        still = client.get("/threads/t").json()
        busy = client.post("/threads/t/run", json={"text": "pay ann 5"})
        wrong = client.post("/threads/t/run", json={"answers": {"call_9": "approve"}})
        ended = run(client, "t", answers={"call_1": "approve"})
        run(client, "u", text="pay bob 7")
        approving = pool.submit(run, client, "u", answers={"call_1": "approve"})
        until(lambda: "bob 7" in transfers.read_text())
    assert isinstance(approving.exception(), httpx.TransportError)
    with serving(tmp_path) as client:
        stale = client.get("/threads/u").json()
        unknown = run(client, "u", answers={"call_1": "approve"})
        settled = run(client, "u", answers={"call_1": {"kind": "done", "result": "receipt 8"}})

    assert asked == still
    assert [(one["kind"], one["arguments"]) for one in still["questions"]] == [
        ("approval", {"to": "ann", "amount": 5})
    ]
    assert (busy.status_code, "not idle" in busy.text) == (409, True)
    assert (wrong.status_code, "Calls with an open question: call_1." in wrong.text) == (409, True)
    assert (ended["status"], ended["messages"][-1]) == ("idle", "ai: Done: transferred 5 to ann")
    # LangGraph shows a question until the step that asked it is done; an answer to it counts once.
    assert [one["kind"] for one in stale["questions"]] == ["approval"]
    assert [one["kind"] for one in unknown["questions"]] == ["recovery"]
    assert (settled["status"], settled["messages"][-1]) == ("idle", "ai: Done: receipt 8")
    assert transfers.read_text() == "ann 5\nbob 7\n"
