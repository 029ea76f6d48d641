"""Answers to an approval that policy must check first: edited arguments, and permissions for matching calls.

Both look the waiting call up by its id and evaluate it with the tools, rules and permissions of now.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.approvals import RecordedAnswer, record_answer
from graph_agent.app.mcp_servers import SessionServers
from graph_agent.app.project_trust import settings_at
from graph_agent.app.reader import read_database
from graph_agent.app.toolset import ToolStorage, full_registry, open_toolbox, roots_of
from graph_agent.config.paths import blob_dir
from graph_agent.errors import AnswerRefused
from graph_agent.events import EventBus
from graph_agent.inspect import CallView, Reader
from graph_agent.ports import AlwaysAllow, Answer, Clock, GrantScope, Scope, SystemClock
from graph_agent.session.answer_checks import attach_grant
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteGrants
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.threads import SqliteFileStates
from graph_agent.toolbox import MCP_PREFIX, GraphToolbox

__all__ = ["WaitingCall", "allow_always", "edit_approval", "find_waiting_call", "toolbox_for_call"]


@dataclass(frozen=True, slots=True)
class WaitingCall:
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


def find_waiting_call(database: Path, text: str) -> WaitingCall:
    """The call that an id, a part of one or THREAD:CALL names.

    Raises:
        UnknownId: no call has this id, or several have.
    """
    with read_database(database) as reader:
        waiting = [view for view in reader.approvals() if view.is_waiting]
        thread_id, call_id = _named(reader, waiting, text)
        view = next((v for v in waiting if (v.thread_id, v.record["call_id"]) == (thread_id, call_id)), None)
        thread, roots = reader.thread(thread_id), reader.roots(thread_id)
        values = reader.inspection(thread_id).state.values if view else {}
    scope = Scope(thread_id, thread.mode, str(values.get("cwd") or ""))
    return WaitingCall(thread_id, call_id, view, Path(thread.workspace).resolve(), roots, scope)


def _named(reader: Reader, waiting: list[CallView], text: str) -> tuple[str, str]:
    exact = [(view.thread_id, view.record["call_id"]) for view in waiting if view.record["call_id"] == text]
    if len(exact) == 1:
        return exact[0]
    target = reader.resolve(text, kinds=("call",))
    return target.thread_id, target.id


@asynccontextmanager
async def toolbox_for_call(database: Path, call: WaitingCall, clock: Clock) -> AsyncIterator[GraphToolbox]:
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


async def allow_always(
    database: Path, text: str, scope: GrantScope, *, by: str, clock: Clock | None = None
) -> tuple[RecordedAnswer, AlwaysAllow]:
    """Approve a call, and what is exactly like it from now on; returns the answer that stands and the rules.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or no rule can be made of it; then it stays open.
    """
    clock = clock or SystemClock()
    call = find_waiting_call(database, text)
    answer = Answer("approve", by, clock.now())
    if call.view is None:
        return await record_answer(database, call.name, answer), AlwaysAllow(scope, ())
    record = call.view.record
    async with toolbox_for_call(database, call, clock) as toolbox:
        proposal = await toolbox.propose(record["tool_name"], record["arguments"], call.scope)
    if not proposal.rules:
        raise AnswerRefused(
            f"call {call.call_id!r} cannot be allowed always, it still waits: {proposal.objection} "
            "Approve it once, without --always."
        )
    always = AlwaysAllow(scope, proposal.rules, proposal.folder)
    granted = attach_grant(answer, always, call.call_id, call.scope, str(call.workspace))
    return await record_answer(database, call.name, granted), always


async def edit_approval(
    database: Path, text: str, arguments: Mapping[str, Any], *, by: str, clock: Clock | None = None
) -> RecordedAnswer:
    """Change a waiting call's arguments and approve it with them. The first answer wins.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or it may not run with these arguments; then it stays open.
    """
    clock = clock or SystemClock()
    call = find_waiting_call(database, text)
    # A server's tool is known only where its server runs: there it is judged, when the answer is applied.
    if call.view is not None and not call.view.record["tool_name"].startswith(MCP_PREFIX):
        async with toolbox_for_call(database, call, clock) as toolbox:
            plan = await toolbox.prepare(call.view.record["tool_name"], arguments, call.scope)
        if plan.verdict in ("unusable", "deny"):
            raise AnswerRefused(f"the arguments were not taken, call {call.call_id!r} still waits: {plan.reason}")
    return await record_answer(database, call.name, Answer("edit", by, clock.now(), arguments))
