"""A call that waits, looked up by an id, and the toolbox that judges it: what answers from outside begin with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from graph_agent.app.plugins import full_registry
from graph_agent.app.project import settings_at
from graph_agent.app.roots import roots_of
from graph_agent.app.servers import SessionServers
from graph_agent.app.tooling import ToolStorage, open_toolbox
from graph_agent.config.paths import blob_dir
from graph_agent.events import EventBus
from graph_agent.inspect import CallView, Reader
from graph_agent.ports import Clock, Scope
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.database import Database
from graph_agent.store.file_states import SqliteFileStates
from graph_agent.store.grants import SqliteGrants
from graph_agent.store.journal import SqliteJournal
from graph_agent.toolbox import GraphToolbox

__all__ = ["Waiting", "judging", "look_up"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that an id names."""

    thread_id: str
    call_id: str
    view: CallView | None
    """None: it does not wait for an approval (any more)."""
    workspace: Path
    roots: tuple[str, ...]
    """Folders beside the workspace that the thread may work in."""
    scope: Scope

    @property
    def name(self) -> str:
        """The id that names it whatever other threads hold."""
        return f"{self.thread_id}:{self.call_id}"


def look_up(database: Path, text: str) -> Waiting:
    """The call that an id, a part of one or THREAD:CALL names.

    Raises:
        UnknownId: no call has this id, or several have.
    """
    with Reader.open(database) as reader:
        waiting = [view for view in reader.approvals() if view.is_waiting]
        thread_id, call_id = _named(reader, waiting, text)
        view = next((v for v in waiting if (v.thread_id, v.record["call_id"]) == (thread_id, call_id)), None)
        thread, roots = reader.thread(thread_id), reader.roots(thread_id)
        values = reader.inspection(thread_id).state.values if view else {}
    scope = Scope(thread_id, thread.mode, str(values.get("cwd") or ""))
    return Waiting(thread_id, call_id, view, Path(thread.workspace).resolve(), roots, scope)


def _named(reader: Reader, waiting: list[CallView], text: str) -> tuple[str, str]:
    exact = [(view.thread_id, view.record["call_id"]) for view in waiting if view.record["call_id"] == text]
    if len(exact) == 1:
        return exact[0]
    target = reader.resolve(text, kinds=("call",))
    return target.thread_id, target.id


@asynccontextmanager
async def judging(database: Path, call: Waiting, clock: Clock) -> AsyncIterator[GraphToolbox]:
    """The tools where a call would run, judged by the rules and grants of now; nothing is run with them."""
    settings = settings_at(call.workspace, {"database": str(database)})
    async with await Database.open(database) as opened:
        blobs = FileBlobs(blob_dir(database))
        journal, states = SqliteJournal(opened, blobs, clock), SqliteFileStates(opened, clock)
        storage = ToolStorage(blobs, states, journal, SqliteGrants(opened))
        roots = roots_of(call.workspace, call.roots, settings).usable
        registry, _ = await asyncio.to_thread(full_registry, call.workspace, settings)
        bus = EventBus()
        # None of them is started: what a server's tools would say is known where they run.
        servers = SessionServers(settings, registry, call.workspace, bus)
        yield await open_toolbox(call.workspace, settings, storage, bus, servers, roots=roots)
