"""Continues threads in this process, only under `graph-agent web --run`: after an answer, a message or a decision.

A thread is held only while something of it can run. When a question is open it is closed again, so that a chat may
open it, and every other place may answer.
"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.reader import read_database
from graph_agent.app.threads import run_until_question
from graph_agent.errors import AgentError

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["ThreadRunner"]

_LOG = logging.getLogger(__name__)


class ThreadRunner:
    """The threads that this process works on."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        """Threads to look at once more: something was answered while they were being closed."""
        self._sessions: dict[str, Session] = {}
        self._is_closing = False

    def wake(self, thread_id: str) -> bool:
        """Continue the thread, or its parent, unless others hold it; returns whether this process works on it."""
        with read_database(self._database) as reader:
            own = reader.top_thread(thread_id)
            thread = reader.thread(own)
        if self._is_closing or (thread.checkpoint_id is None and not thread.queued_messages):
            return False
        if own in self._tasks:
            self._again.add(own)
            return True
        if thread.holder is not None:
            return False
        task = asyncio.get_running_loop().create_task(self._work(own, Path(thread.workspace)))
        self._tasks[own] = task
        task.add_done_callback(lambda _: self._tasks.pop(own, None))
        return True

    async def stop(self, thread_id: str) -> bool:
        """Stop the turn of a thread that this process works on; False if it does not."""
        with read_database(self._database) as reader:
            own = reader.top_thread(thread_id)
        session = self._sessions.get(own)
        if session is None:
            return False
        await session.stop()
        return True

    async def close(self) -> None:
        """Interrupt what runs, so that a later process continues it."""
        self._is_closing = True
        await asyncio.gather(*(session.shut_down() for session in list(self._sessions.values())))
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)

    async def _work(self, thread_id: str, workspace: Path) -> None:
        from graph_agent.app.opening import open_session

        try:
            while True:
                self._again.discard(thread_id)
                session = await open_session(workspace=workspace, thread_id=thread_id, flags={"db": self._database})
                self._sessions[thread_id] = session
                try:
                    await run_until_question(session, lambda: self._is_closing)
                finally:
                    del self._sessions[thread_id]
                    await session.close()
                if thread_id not in self._again or self._is_closing:
                    return
        except AgentError as failure:
            _LOG.warning("Thread %s was not continued: %s", thread_id, failure)
        except asyncio.CancelledError:
            if not self._is_closing:
                raise
