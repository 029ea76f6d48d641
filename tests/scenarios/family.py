"""A thread with sub-agents on a real database with the real tools, played by lives that open, work and close."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.messages import AIMessage

from graph_agent.app.models import budget_of
from graph_agent.app.reader import read_database
from graph_agent.app.session_parts import session_dependencies
from graph_agent.config.sources import load_settings
from graph_agent.events import Event, EventBus
from graph_agent.ports import ModelRequest, OnDelta
from graph_agent.ports.storage import sub_agent_id
from graph_agent.session.dependencies import Thread
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage.sqlite.threads import Store, open_store
from tests.fakes.scripted_model import text

__all__ = ["PARENT", "Family", "TaskModel", "asked"]

PARENT = "parent"


def asked(rest: TurnResult) -> list[tuple[str, str]]:
    """Which sub-agent asks about which tool; empty for the thread itself."""
    return [(item.sub_agent, item.call["tool_name"]) for item in rest.questions]


class TaskModel:
    """Answers each thread from a list of its own, found by a word of the thread's first message."""

    name = label = "scripted"
    chosen: Mapping[str, str] = {}

    def __init__(self, replies: Mapping[str, Sequence[AIMessage | Exception]]) -> None:
        self._replies = {word: list(given) for word, given in replies.items()}
        self.requests: list[tuple[str, ModelRequest]] = []

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """The next reply to this thread; after the last one, that it has ended."""
        first = next(message.text for message in request.messages if message.type == "human")
        word = next(word for word in self._replies if word in first)
        self.requests.append((word, request))
        left = self._replies[word]
        reply = left.pop(0) if left else text(f"{word} has ended")
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def names(self) -> tuple[str, ...]:
        return (self.name,)

    async def switch(self, name: str) -> None:
        """There is only one."""

    async def close(self) -> None:
        """Nothing is open."""

    def sent(self, word: str) -> Sequence[tuple[str, str]]:
        """Kind and text of each message of the newest request of a thread."""
        request = [request for of, request in self.requests if of == word][-1]
        return [(message.type, message.text) for message in request.messages]

    def count(self, word: str) -> int:
        """How many requests a thread has made."""
        return sum(of == word for of, _ in self.requests)


@dataclass
class Family:
    """Model and workspace outlive a life, as the world does."""

    folder: Path
    model: TaskModel
    mode: str = "default"
    settings: Mapping[str, object] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        """Where all of them work."""
        folder = self.folder / "workspace"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def database(self) -> Path:
        """Where all of them are kept."""
        return self.folder / "db"

    @asynccontextmanager
    async def open_session(
        self, thread_id: str = PARENT, max_steps: int = 50, checkpoint: str | None = None
    ) -> AsyncIterator[Session]:
        """One process's session; closing gives all threads back."""
        store = await open_store(self.database)
        session = await self._session(store, thread_id, max_steps, checkpoint)
        try:
            yield session
        finally:
            await session.close()

    def child(self, call_id: str, parent: str = PARENT, undone: int = 0) -> str:
        """The thread of the sub-agent of a call."""
        return sub_agent_id(parent, call_id, undone)

    def read(self, name: str) -> str:
        """A file of the workspace; empty where it is not there."""
        path = self.workspace / name
        return path.read_text() if path.exists() else ""

    def statuses(self, thread_id: str = PARENT) -> dict[str, str]:
        """The effective status of each call of a thread, under its tool's name and number of attempts."""
        with read_database(self.database) as reader:
            views = reader.calls(thread_id)
        return {
            f"{view.record['tool_name']} {view.record.get('attempt', 1)}": view.record["status"] for view in views
        }

    async def _session(self, store: Store, thread_id: str, max_steps: int, checkpoint: str | None) -> Session:
        settings = load_settings(os.environ, flags={"database": str(self.database), "sandbox": "off"})
        settings = settings.model_copy(update=dict(self.settings))
        await store.threads.create(thread_id, str(self.workspace), self.model.label, self.mode)
        depth = await store.threads.depth(thread_id)
        bus = EventBus()
        bus.subscribe(lambda _, event: self.events.append(event))
        budget = budget_of(settings)
        thread = Thread(
            thread_id, self.workspace, self.mode, "tester", max_steps, checkpoint, budget=budget, depth=depth
        )
        return await Session.open(thread, await session_dependencies(thread, settings, self.model, store, bus))
