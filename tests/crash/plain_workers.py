"""The tasks of the worker trials on plain LangGraph: `create_agent`, PostgresSaver, approvals by its middleware.

Workers take tasks from a table, with a lease of twelve seconds that they renew, as ours do. They have nothing else
that a program in LangGraph's documentation does not have: no journal, no fence. The faults, the scripted model, the
person and the checks of the files are those of the trials.

    python -m tests.crash.worker_faults --plain [--each N] [--kind KIND]...
"""

import os
import subprocess
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from graph_agent.errors import StorageError
from tests.crash.worker_trial import Trial

__all__ = ["PlainTrial"]

_TABLES = """
CREATE TABLE plain_tasks (
    thread_id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    asked TEXT NOT NULL DEFAULT '',
    approved TEXT NOT NULL DEFAULT '',
    token TEXT NOT NULL DEFAULT '',
    pid BIGINT NOT NULL DEFAULT 0,
    expires_at TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
)
"""
_TAKE = """
UPDATE plain_tasks SET state = 'running', token = %(token)s, pid = %(pid)s,
    expires_at = clock_timestamp() + interval '12 seconds'
WHERE thread_id = (SELECT thread_id FROM plain_tasks
    WHERE state = 'queued' OR (state = 'running' AND expires_at < clock_timestamp())
    ORDER BY thread_id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING thread_id, place, approved
"""
_RENEW = """
UPDATE plain_tasks SET expires_at = clock_timestamp() + interval '12 seconds'
WHERE token = ANY(%s) AND state = 'running'
"""
_END = "UPDATE plain_tasks SET state = %s, asked = %s WHERE thread_id = %s AND token = %s"
_APPROVE = "UPDATE plain_tasks SET state = 'queued', approved = asked WHERE thread_id = %s AND state = 'waiting'"
_SLOTS = 4
_RENEWAL_S = 3.0
_LOOK_S = 0.3


@dataclass
class PlainTrial(Trial):
    """A trial of such workers."""

    module = __name__
    arguments = ()
    held = """
SELECT thread_id, token, '', pid, state = 'running' AND expires_at > clock_timestamp() FROM plain_tasks
WHERE token <> ''
"""

    def __post_init__(self) -> None:
        url = self.command.env["GRAPH_AGENT_DB"]
        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_TABLES)

    def add(self) -> None:
        """See `Trial.add`."""
        thread_id = f"plain-{len(self.tasks)}"
        place = self.command.folder / f"place{len(self.tasks)}"
        place.mkdir(exist_ok=True)
        self._rows("INSERT INTO plain_tasks (thread_id, place) VALUES (%s, %s)", (thread_id, str(place)))
        self.tasks[thread_id] = place

    def ends(self) -> dict[str, tuple[str, str]]:
        """See `Trial.ends`."""
        return {thread: (state, "") for thread, state in self._rows("SELECT thread_id, state FROM plain_tasks")}

    def answer(self) -> set[str]:
        """Approve, as often as in `Trial.answer`; nobody is ever asked what became of a call."""
        for (thread_id,) in self._rows("SELECT thread_id FROM plain_tasks WHERE state = 'waiting'"):
            if self.chance.random() < 0.5:
                self._rows(_APPROVE, (thread_id,))
                for call_id in self.calls:
                    self.allowed[thread_id, call_id] = 1
        return set()

    def check(self) -> None:
        """See `Trial.check`: only what the files say."""
        self.violations += [*self.unfinished(), *self.against_files()]

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            with psycopg.connect(self.command.env["GRAPH_AGENT_DB"], autocommit=True) as connection:
                cursor = connection.execute(statement.encode(), values)
                return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise StorageError(str(error)) from error


def _tools(place: Path) -> list[BaseTool]:
    @tool
    def bash(command: str) -> str:
        """Run a command."""
        done = subprocess.run(["/bin/sh", "-c", command], cwd=place, capture_output=True, text=True, check=False)
        return done.stdout or "no output"

    @tool
    def write_file(file_path: str, content: str) -> str:
        """Write a file."""
        (place / file_path).write_text(content, encoding="utf-8")
        return "written"

    return [bash, write_file]


class _Worker:
    def __init__(self, url: str, address: str) -> None:
        self._url = url
        self._model = ChatOpenAI(model="fake", base_url=address, api_key=lambda: "sk-test", max_retries=3)
        self._held: set[str] = set()

    def work(self) -> None:
        """Run tasks until this process is ended."""
        threading.Thread(target=self._renew, daemon=True).start()
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(_SLOTS) as threads:
            while True:
                for ended in [one for one in running if one.done()]:
                    running.discard(ended)
                    with suppress(psycopg.Error):  # Its lease ends, and somebody takes it again.
                        ended.result()
                while len(running) < _SLOTS and (taken := self._take()):
                    running.add(threads.submit(self._run, *taken))
                time.sleep(_LOOK_S)

    def _take(self) -> tuple[str, str, str, str] | None:
        token = uuid4().hex
        with suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True) as connection:
            row = connection.execute(_TAKE, {"token": token, "pid": os.getpid()}).fetchone()
            return None if row is None else (token, *row)
        return None

    def _renew(self) -> None:
        while True:
            with suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True) as connection:
                connection.execute(_RENEW, (list(self._held),))
            time.sleep(_RENEWAL_S)

    def _run(self, token: str, thread_id: str, place: str, approved: str) -> None:
        with self._renewed(token), PostgresSaver.from_conn_string(self._url) as saver:
            asked = self._continue(thread_id, Path(place), approved, saver)
            with psycopg.connect(self._url, autocommit=True) as connection:
                connection.execute(_END, ("waiting" if asked else "done", asked, thread_id, token))

    @contextmanager
    def _renewed(self, token: str) -> Iterator[None]:
        self._held.add(token)
        try:
            yield
        finally:
            self._held.discard(token)

    def _continue(self, thread_id: str, place: Path, approved: str, saver: PostgresSaver) -> str:
        """Run the thread until it asks for an approval, whose id is returned, or ends."""
        review = HumanInTheLoopMiddleware({"bash": True, "write_file": True})
        agent = create_agent(self._model, _tools(place), middleware=[review], checkpointer=saver)
        config: Any = {"configurable": {"thread_id": thread_id}}
        while True:
            state = agent.get_state(config)
            work: Any = None
            if state.interrupts:
                [question] = state.interrupts
                if question.id != approved:
                    return str(question.id)
                decisions = [{"type": "approve"} for _ in question.value["action_requests"]]
                work = Command(resume={"decisions": decisions})
            elif not state.values:
                work = {"messages": [("user", f"go {thread_id}")]}
            elif not state.tasks:  # Not `next`: that is empty where a step has run that no checkpoint has yet.
                return ""
            agent.invoke(work, config, durability="sync")


def _main() -> None:
    settings = tomllib.loads((Path(os.environ["GRAPH_AGENT_HOME"]) / "config.toml").read_text(encoding="utf-8"))
    _Worker(settings["database"], os.environ["GRAPH_AGENT_BASE_URL"]).work()


if __name__ == "__main__":
    _main()
