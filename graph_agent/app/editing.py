"""Approves a call with other arguments from any process: judged here, and again when it is applied."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.answering import Answered, give
from graph_agent.app.tooling import open_toolbox
from graph_agent.config.load import load_settings
from graph_agent.config.paths import blob_dir
from graph_agent.errors import AnswerRefused
from graph_agent.events import EventBus
from graph_agent.inspect import CallView, Reader
from graph_agent.ports import Answer, Clock, Plan, Scope, SystemClock
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.database import Database
from graph_agent.store.file_states import SqliteFileStates
from graph_agent.store.journal import SqliteJournal

__all__ = ["edit_approval"]


async def edit_approval(
    database: Path, text: str, arguments: Mapping[str, Any], *, by: str, clock: Clock | None = None
) -> Answered:
    """Change a waiting call's arguments and approve it with them. The first answer wins.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or it may not run with these arguments; then it stays open.
    """
    with Reader.open(database) as reader:
        target = reader.resolve(text, kinds=("call",))
        named = (target.thread_id, target.id)
        waiting = [view for view in reader.approvals() if view.is_waiting]
        view = next((view for view in waiting if (view.thread_id, view.record["call_id"]) == named), None)
        thread = reader.thread(target.thread_id)
        values = reader.inspection(target.thread_id).state.values if view else {}
    clock = clock or SystemClock()
    if view is not None:
        scope = Scope(thread.thread_id, thread.mode, str(values.get("cwd") or ""))
        plan = await _plan(database, Path(thread.workspace), view, arguments, scope, clock)
        if plan.verdict in ("unusable", "deny"):
            raise AnswerRefused(f"the arguments were not taken, call {target.id!r} still waits: {plan.reason}")
    return await give(database, f"{target.thread_id}:{target.id}", Answer("edit", by, clock.now(), arguments))


async def _plan(
    database: Path, workspace: Path, view: CallView, arguments: Mapping[str, Any], scope: Scope, clock: Clock
) -> Plan:
    settings = load_settings(os.environ, flags={"database": str(database)})
    async with await Database.open(database) as opened:
        blobs = FileBlobs(blob_dir(database))
        storage = (blobs, SqliteFileStates(opened, clock), SqliteJournal(opened, blobs, clock))
        toolbox = await open_toolbox(workspace, settings, storage, EventBus())
        return await toolbox.plan(view.record["tool_name"], arguments, scope)
