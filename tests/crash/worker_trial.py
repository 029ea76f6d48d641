"""Tasks that workers run under faults, a person who answers, and the checks of what must hold afterwards.

Checked from outside: commands append to a file in their workspace; what the product itself says is read through
its storage, from a file and from a server alike.
"""

import asyncio
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from graph_agent.app.approvals import answer_approval
from graph_agent.app.reader import read_database
from graph_agent.app.recovery import Decision, decide_calls
from graph_agent.config.paths import database_path
from graph_agent.errors import AgentError, StorageError
from graph_agent.storage import open_read_connection
from graph_agent.worker.tasks import TaskRequest, add_task, list_tasks
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.scenarios.command import Command

__all__ = ["ENDED", "REPLIES", "Trial"]

REPLIES = [
    TC("c1", "bash", {"command": "echo c1 >> ledger; sleep 0.1"}),
    TCS(
        ("c2", "bash", {"command": "sleep 0.1; echo c2 >> ledger; sleep 0.1"}),
        ("c3", "write_file", {"file_path": "a.txt", "content": "hello\n"}),
    ),
    TC("c4", "bash", {"command": "echo c4 >> ledger; sleep 0.15"}),
    TXT("all done"),
]
_MOST_SECONDS = 400.0
_EARLY = 0.03
"""How likely a worker is killed, at each round, while none is at work."""
ENDED = {"done", "failed", "cancelled"}


@dataclass
class Trial:
    """Some tasks, the workers that run them, and what the person has answered."""

    module: ClassVar[str] = "graph_agent"
    """Workers are `python -m MODULE ARGUMENTS`."""
    arguments: ClassVar[tuple[str, ...]] = ("worker", "-j", "4", "--host-label", socket.gethostname())
    held: ClassVar[str] = """
SELECT thread_id, owner_token, host, pid, ended_at IS NULL AND expires_at > clock_timestamp()
FROM graph_agent.leases
"""
    """Who holds which thread, on a server."""
    calls: ClassVar[tuple[str, ...]] = ("c1", "c2", "c4")
    """Those that append to the ledger."""
    command: Command
    chance: random.Random
    tasks: dict[str, Path] = field(default_factory=dict)
    """The workspace of each thread."""
    kills: int = 0
    allowed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each call of a thread may have run by now."""
    asked: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    """The arguments with which an approval was first seen."""
    violations: list[str] = field(default_factory=list)

    def add(self) -> None:
        """Add a task, with a workspace of its own.

        Raises:
            StorageError: the database cannot be reached.
        """
        place = self.command.folder / f"place{len(self.tasks)}"
        place.mkdir(exist_ok=True)
        task = asyncio.run(add_task(self.database, TaskRequest(f"go {len(self.tasks)}", place, {})))
        self.tasks[task.thread_id] = place

    def run(self, kills: int, workers: int) -> None:
        """Kill so often, then let the workers come to their end; check."""
        running = [self.command.start("worker", "-j", "2") for _ in range(workers)]
        until = time.monotonic() + _MOST_SECONDS
        while (statuses := {one for one, _ in self.ends().values()}) - ENDED and time.monotonic() < until:
            self.answer()
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
        self.check()

    @property
    def database(self) -> Path:
        """Where everything is stored."""
        return database_path(self.command.env)

    def ends(self) -> dict[str, tuple[str, str]]:
        """The status of each task, and its error, by thread.

        Raises:
            StorageError: the database cannot be reached.
        """
        return {view.task.thread_id: (view.status, view.task.error) for view in list_tasks(self.database)}

    def answer(self) -> set[str]:
        """Answer every open question, after a look at the files; returns the threads with an interrupted call.

        Raises:
            StorageError: the database cannot be reached; what was answered until then stands.
        """
        with read_database(self.database) as reader:
            asked = [view for view in reader.approvals() if view.is_waiting]
            interrupted = [view for view in reader.interrupted() if view.is_interrupted]
        for view in asked:
            key = view.thread_id, view.record["call_id"]
            known = self.asked.setdefault((*key, view.record["attempt"]), view.record["arguments"])
            if known != view.record["arguments"]:
                self.violations.append(f"I7: {key} was asked differently: {known}, {view.record['arguments']}")
            if self.chance.random() < 0.5:
                self.allowed[key] = max(self.allowed[key], 1)
                asyncio.run(answer_approval(self.database, ":".join(key), "approve", by="person"))
        for view in interrupted:
            self._recover(view.thread_id, view.record)
        return {view.thread_id for view in interrupted}

    def _recover(self, thread_id: str, record: Mapping[str, Any]) -> None:
        call_id, folder = record["call_id"], self.tasks[thread_id]
        has_run = call_id in _ledger(folder) or (call_id == "c3" and (folder / "a.txt").exists())
        if has_run and record.get("reason") == "never_started":
            self.violations.append(f"I2: {call_id} of {thread_id} had run and was shown as never started")
        kind: Literal["done", "retry"] = "done" if has_run else "retry"
        decision = Decision(kind, call_id, "it ran" if has_run else "")
        try:
            [one] = asyncio.run(decide_calls(self.database, thread_id, [decision], by="person"))
        except StorageError:
            self.allowed[thread_id, call_id] += not has_run  # It may have been stored all the same.
            raise
        except AgentError:  # It runs again already, or its command still does.
            return
        self.allowed[thread_id, call_id] += not has_run and one.accepted

    def check(self) -> None:
        """Add what is broken to the violations."""
        self.violations += [*self.unfinished(), *self.against_files(), *self._against_journal()]

    def unfinished(self) -> Iterator[str]:
        """The tasks that did not come to their end."""
        for thread, (status, error) in self.ends().items():
            if status != "done":
                yield f"{thread} is {status} in the end: {error}"

    def against_files(self) -> Iterator[str]:
        """What the files say about each call."""
        for thread, folder in self.tasks.items():
            if not (folder / "a.txt").exists():
                yield f"I1: c3 of {thread} did not write its file"
            for call_id in self.calls:
                count, allowed = _ledger(folder).count(call_id), self.allowed[thread, call_id]
                if not 1 <= count <= allowed:
                    yield f"I1: {call_id} of {thread} ran {count} times, allowed {allowed} times"

    def _against_journal(self) -> Iterator[str]:
        begun = self._count("SELECT thread_id, call_id FROM journal WHERE status <> 'not_started'")
        approved = self._count("SELECT thread_id, call_id FROM decisions WHERE kind = 'approve'")
        retried = self._count("SELECT thread_id, call_id FROM decisions WHERE kind = 'retry'")
        for thread, folder in self.tasks.items():
            for call_id in self.calls:
                key, count = (thread, call_id), _ledger(folder).count(call_id)
                if count > begun[key]:
                    yield f"I2: {call_id} of {thread} ran {count} times, and began {begun[key]} times"
                if count > 1 + retried[key] or (count and not approved[key]):
                    yield f"I3: {call_id} of {thread} ran {count} times with {retried[key]} retries"

    def _count(self, sql: str) -> Counter[tuple[str, str]]:
        with closing(open_read_connection(self.database)) as connection:
            return Counter((thread, call) for thread, call in connection.rows(sql))

    def wrong_requests(self, server: FakeOpenAI) -> Iterator[str]:
        """What the model was sent and should not have been."""
        yield from (f"I6: refused by the server: {fault}" for fault in server.faults)
        said = Counter(
            tuple(message["content"] for message in body["messages"] if message["role"] == "user")
            for body in server.bodies
        )
        yield from (f"I8: the model was told {words}" for words in said if len(words) != 1)


def _ledger(folder: Path) -> list[str]:
    path = folder / "ledger"
    return path.read_text().split() if path.exists() else []
