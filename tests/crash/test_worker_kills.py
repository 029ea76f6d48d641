"""Workers that are killed at random moments, several at once: each task ends, nothing runs twice without asking."""

import asyncio
import contextlib
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from graph_agent.app.approvals import answer_approval
from graph_agent.app.reader import read_database
from graph_agent.app.recovery import Decision, decide_calls
from graph_agent.errors import AgentError
from graph_agent.worker.tasks import list_tasks
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.scenarios.command import Command

REPLIES = [
    TC("c1", "bash", {"command": "echo c1 >> ledger; sleep 0.1"}),
    TCS(
        ("c2", "bash", {"command": "sleep 0.1; echo c2 >> ledger; sleep 0.1"}),
        ("c3", "write_file", {"file_path": "a.txt", "content": "hello\n"}),
    ),
    TC("c4", "bash", {"command": "echo c4 >> ledger; sleep 0.15"}),
    TXT("all done"),
]
CALLS = ("c1", "c2", "c4")
_MOST_SECONDS = 400.0
_EARLY = 0.03
"""How likely a worker is killed, at each look, while none is at work."""
_ENDED = {"done", "failed", "cancelled"}


@dataclass
class Trial:
    """Some tasks, the workers that run them, and what the person has answered."""

    command: Command
    chance: random.Random
    tasks: dict[str, Path]
    """The workspace of each thread."""
    kills: int = 0
    allowed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each call of a thread may have run by now."""
    asked: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    """The arguments with which an approval was first seen."""
    violations: list[str] = field(default_factory=list)

    def run(self, kills: int, workers: int) -> None:
        """Kill so often, then let the workers come to their end; check."""
        running = [self.command.start("worker", "-j", "2") for _ in range(workers)]
        until = time.monotonic() + _MOST_SECONDS
        while (statuses := self._statuses()) - _ENDED and time.monotonic() < until:
            self._answer()
            # A worker loads for a second; most kills come when one of them is at work.
            if self.kills < kills and ("running" in statuses or self.chance.random() < _EARLY):
                time.sleep(self.chance.uniform(0, 0.3))
                number = self.chance.randrange(workers)
                self.command.kill(running[number])
                self.kills += 1
                running[number] = self.command.start("worker", "-j", "2")
            time.sleep(0.1)
        for worker in running:
            worker.send_signal(signal.SIGTERM)
        for worker in running:
            worker.wait(timeout=60)
        self._check()

    @property
    def database(self) -> Path:
        """Where everything is stored."""
        return self.command.folder / "home" / "data" / "graph-agent.db"

    def _statuses(self) -> set[str]:
        return {view.status for view in list_tasks(self.database)}

    def _answer(self) -> None:
        """Answer every question that is open, after looking at the world."""
        with read_database(self.database) as reader:
            asked = [view for view in reader.approvals() if view.is_waiting]
            interrupted = [view for view in reader.interrupted() if view.is_interrupted]
        for view in asked:
            key = view.thread_id, view.record["call_id"]
            known = self.asked.setdefault((*key, view.record["attempt"]), view.record["arguments"])
            if known != view.record["arguments"]:
                self.violations.append(f"{key} was asked differently: {known}, {view.record['arguments']}")
            if self.chance.random() < 0.5:
                self.allowed[key] = max(self.allowed[key], 1)
                asyncio.run(answer_approval(self.database, ":".join(key), "approve", by="person"))
        for view in interrupted:
            call_id, folder = view.record["call_id"], self.tasks[view.thread_id]
            has_run = call_id in _ledger(folder) or (call_id == "c3" and (folder / "a.txt").exists())
            kind: Literal["done", "retry"] = "done" if has_run else "retry"
            decision = Decision(kind, call_id, "it ran" if has_run else "")
            with contextlib.suppress(AgentError):  # It runs again already, or its command still does.
                [one] = asyncio.run(decide_calls(self.database, view.thread_id, [decision], by="person"))
                self.allowed[view.thread_id, call_id] += not has_run and one.accepted

    def _check(self) -> None:
        for task in self.command.json("tasks", "list")["tasks"]:
            thread, folder = task["thread_id"], self.tasks[task["thread_id"]]
            if task["status"] != "done":
                self.violations.append(f"{thread} is {task['status']} in the end: {task['error']}")
            for call_id in CALLS:
                count = _ledger(folder).count(call_id)
                if not 1 <= count <= self.allowed[thread, call_id]:
                    self.violations.append(
                        f"{call_id} of {thread} ran {count} times, allowed {self.allowed[thread, call_id]} times"
                    )
            if not (folder / "a.txt").exists():
                self.violations.append(f"c3 of {thread} did not write its file")


def _ledger(folder: Path) -> list[str]:
    path = folder / "ledger"
    return path.read_text().split() if path.exists() else []


def play(folder: Path, seed: int, *, tasks: int, kills: int, workers: int) -> Trial:
    """One trial."""
    with FakeOpenAI(REPLIES, strict=True, by_history=True) as server:
        command = Command(folder, server.base_url)
        places: dict[str, Path] = {}
        for number in range(tasks):
            place = folder / f"place{number}"
            place.mkdir()
            places[command.json("tasks", "add", f"go {number}", "--workspace", str(place))["thread_id"]] = place
        trial = Trial(command, random.Random(seed), places)
        trial.run(kills, workers)
        trial.violations += [f"refused by the server: {fault}" for fault in server.faults]
        said = Counter(
            tuple(message["content"] for message in body["messages"] if message["role"] == "user")
            for body in server.bodies
        )
        trial.violations += [f"the model was told {words}" for words in said if len(words) != 1]
        return trial


def test_two_killed_workers_end_their_tasks_and_run_nothing_twice(tmp_path: Path) -> None:
    trial = play(tmp_path, 1, tasks=2, kills=3, workers=2)

    assert (trial.violations, trial.kills) == ([], 3)


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
