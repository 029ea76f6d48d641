"""The graph under LangGraph's own development server, as a client meets it: over HTTP."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.architecture.checkout import ROOT
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command, free_port, until

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("langgraph_api") is None,
    reason="NOT TESTED: LangGraph's development server is not installed; `make server` installs it",
)

_OPTIONS = ("--no-browser", "--no-reload", "--allow-blocking")
_LEAVES_A_TRACE = "echo begun >> effects; until [ -e enough ]; do sleep 0.2; done"


class Server:
    """One run of `langgraph dev`."""

    def __init__(self, command: Command, graphs: Path = ROOT) -> None:
        folder = command.folder / "server"
        folder.mkdir(exist_ok=True)
        for file in (graphs / "langgraph.json", *([] if graphs == ROOT else graphs.glob("*.py"))):
            shutil.copy(file, folder)
        for package in ("graph_agent", "tools", "policy"):
            if not (folder / package).exists():
                (folder / package).symlink_to(ROOT / package)
        port = free_port()
        self._log = (folder / "log").open("a")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", *_OPTIONS, "--port", str(port)],
            cwd=folder,
            env={
                **command.env,
                "GRAPH_AGENT_WORKSPACE": str(command.workspace),
                "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            },
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)

    def is_up(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"it ended with {self._process.returncode}; see {self._log.name}")
        try:
            return self.http.get("/ok").status_code == 200
        except httpx.TransportError:
            return False

    def post(self, path: str, **body: Any) -> Any:
        return self.http.post(path, json=body).raise_for_status().json()

    def run(self, thread: str, graph: str = "agent", **work: Any) -> Any:
        """Run to the next rest."""
        return self.post(f"/threads/{thread}/runs/wait", assistant_id=graph, **work)

    def kill(self) -> None:
        self.http.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=10)
        self._log.close()


@contextmanager
def serving(command: Command, thread: str, graphs: Path = ROOT) -> Iterator[Server]:
    server = Server(command, graphs)
    try:
        until(server.is_up, 60)
        server.post("/threads", thread_id=thread, if_exists="do_nothing")
        yield server
    finally:
        server.kill()


def asked(values: Any) -> Any:
    return values["__interrupt__"][0]["value"]


def answered(question: Any, kind: str, **words: str) -> Any:
    answers = {
        item["call_id"]: {
            "kind": kind,
            "attempt": item["attempt"],
            "args_digest": item["args_digest"],
            "decided_by": "web",
            **words,
        }
        for item in [*question["approve"], *question["recover"]]
    }
    return {"resume": {"by": question["by"], "answers": answers}}


@pytest.mark.timeout(180)
def test_a_call_that_ran_when_the_server_was_killed_is_interrupted_and_not_run_twice(
    tmp_path: Path,
) -> None:
    thread = str(uuid4())
    script = [TC("c1", "bash", {"command": _LEAVES_A_TRACE}), TXT("done")]
    with FakeOpenAI(script, strict=True, by_history=True) as model:
        command = Command(tmp_path, model.base_url)
        with serving(command, thread) as server:
            question = asked(server.run(thread, input={"messages": [{"role": "user", "content": "go"}]}))
            server.post(f"/threads/{thread}/runs", assistant_id="agent", command=answered(question, "approve"))
            until((command.workspace / "effects").exists)
            held = command("run", "hello", "--resume", thread)
        (command.workspace / "enough").touch()
        seen = command.json("calls", thread)["calls"]
        with serving(command, thread) as server:
            broken = asked(server.run(thread, input=None))
            ended = server.run(thread, command={"resume": [{"type": "respond", "message": "it ran"}]})

    assert question["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
    assert held.returncode == 7
    assert [(call["call_id"], call["status"]) for call in seen] == [("c1", "interrupted")]
    assert (broken["approve"], [item["reason"] for item in broken["recover"]]) == ([], ["outcome_unknown"])
    assert ended["messages"][-1]["content"] == "done"
    assert (command.workspace / "effects").read_text().split().count("begun") == 1
    assert model.faults == []


@pytest.mark.timeout(180)
def test_the_example_for_studio_asks_and_takes_the_answers_of_its_forms(tmp_path: Path) -> None:
    thread, command = str(uuid4()), Command(tmp_path)
    edit = {"type": "edit", "edited_action": {"name": "switch", "args": {"room": "hall", "on": False}}}
    with serving(command, thread, ROOT / "examples/studio") as server:
        question = asked(server.run(thread, "lights", input={"messages": [{"role": "user", "content": "kitchen"}]}))
        refused = asked(server.run(thread, "lights", command={"resume": [{"type": "yes"}]}))
        ended = server.run(thread, "lights", command={"resume": [edit]})

    assert question["action_requests"][0]["args"] == {"room": "kitchen", "on": True}
    assert refused["error"].endswith('Valid: {"decisions": [{"type": "approve"}]}.')
    assert ended["messages"][-1]["content"] == "Done: hall is off"
    assert (command.folder / "server/switched.txt").read_text() == "hall off\n"
