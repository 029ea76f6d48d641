"""Rewind a thread that no session has open: plan it, ask the caller for consent, apply it."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.app.session_parts import session_dependencies
from graph_agent.app.toolset import roots_of
from graph_agent.config.sources import load_settings
from graph_agent.errors import UsageError
from graph_agent.events import EventBus
from graph_agent.graph.run_context import new_owner_token
from graph_agent.model.offline.model import OfflineModel
from graph_agent.ports import Rewind, RewindScope
from graph_agent.session.dependencies import SessionDependencies, Thread
from graph_agent.session.time_travel import (
    RewindPlan,
    apply_rewind,
    finish_interrupted_rewind,
    plan_rewind,
    plan_undo,
)
from graph_agent.storage.sqlite.threads import open_store
from graph_agent.wording import escape, format_count, format_names

__all__ = ["RewindOutcome", "RewindRequest", "format_survey", "reverted_calls", "rewind"]


@dataclass(frozen=True, slots=True)
class RewindRequest:
    """What is wanted of which thread."""

    text: str
    """Checkpoint to go back to; of an undo the thread. Any part of an id; empty is the newest thread of `here`."""
    here: str | None = None
    scope: RewindScope = "both"
    is_undo: bool = False
    is_dry: bool = False
    """Only look."""
    is_forced: bool = False
    """Put back files that somebody else changed, too."""


@dataclass(frozen=True, slots=True)
class RewindOutcome:
    """What came of it."""

    plan: RewindPlan
    is_done: bool
    """False: it was only previewed, refused by the user, or stopped by a conflict."""
    head: str
    """The newest checkpoint of the thread now."""
    left: tuple[str, ...] = ()
    """A sentence for each file that could not be put back."""
    finished: Rewind | None = None
    """An interrupted rewind that was finished first."""


async def rewind(database: Path, order: RewindRequest, consents: Callable[[RewindPlan], bool]) -> RewindOutcome:
    """Do what is ordered, if `consents` agrees to the plan. It is not asked if a conflict stops the rewind.

    Raises:
        UnknownId: no id matches the text, or several do.
        UsageError: there is nothing to undo, a thread was named instead of a checkpoint, its folder is gone, or it
            is a sub-agent's.
        ThreadHeld: another process holds the thread.
    """
    with read_database(database) as reader:
        target = reader.resolve(order.text, order.here, ("thread", "checkpoint"))
        row = reader.thread(target.thread_id)
        stored = reader.roots(target.thread_id)
        owner = reader.top_thread(target.thread_id)
    if owner != target.thread_id:
        raise UsageError(
            f"{target.thread_id} is the thread of a sub-agent and is rewound with its parent. "
            f"List its checkpoints: graph-agent history {owner}"
        )
    if target.kind == "thread" and not order.is_undo:
        raise UsageError(
            f"{order.text!r} is a thread. Name a checkpoint of it, as listed by: "
            f"graph-agent history {target.thread_id}"
        )
    workspace = Path(row.workspace)
    if not await asyncio.to_thread(workspace.is_dir):
        raise UsageError(f"The folder {row.workspace!r} of thread {row.thread_id} no longer exists.")
    settings = load_settings(os.environ, flags={"database": database})
    roots = await asyncio.to_thread(roots_of, workspace, stored, settings)
    thread = Thread(row.thread_id, workspace, row.mode, "rewind", 1, roots=roots.usable)
    store = await open_store(database)
    try:
        parts = await session_dependencies(thread, settings, OfflineModel(), store, EventBus())
    except BaseException:
        await store.database.close()
        raise
    async with AsyncExitStack() as opened:
        opened.push_async_callback(parts.close)
        await parts.lock.acquire(row.thread_id, new_owner_token())
        opened.push_async_callback(parts.lock.release)
        return await _rewind(order, row.thread_id, target.id, parts, consents)


async def _rewind(
    order: RewindRequest,
    thread_id: str,
    checkpoint_id: str,
    parts: SessionDependencies,
    consents: Callable[[RewindPlan], bool],
) -> RewindOutcome:
    finished, left = await finish_interrupted_rewind(thread_id, parts) or (None, [])
    if order.is_undo:
        plan = await plan_undo(thread_id, parts)
    else:
        plan = await plan_rewind(thread_id, checkpoint_id, order.scope, parts)
    is_stopped = bool(plan.conflicts) and not order.is_forced
    is_done = not (order.is_dry or is_stopped) and consents(plan)
    if is_done:
        left = [*left, *await apply_rewind(plan.rewind, parts)]
    return RewindOutcome(plan, is_done, await parts.head(thread_id), tuple(left), finished)


_SCOPES = {"both": "conversation and files", "files": "files only", "chat": "conversation only"}


def format_survey(survey: RewindPlan) -> Iterator[str]:
    """What a rewind changes, what it cannot undo, and its conflicts."""
    rewind = survey.rewind
    action = "Undo the rewind, back to" if rewind.reverts is not None else "Rewind to"
    yield escape(
        f"{action} checkpoint {rewind.checkpoint_id} of thread {rewind.thread_id}: {_SCOPES[rewind.scope]}"
    )
    for one in rewind.files:
        verb = "remove " if one.target.sha256 is None else "create " if one.current.sha256 is None else "restore"
        yield escape(f"  {verb}  {one.path}")
    if not rewind.files and rewind.scope != "chat":
        yield "  no file changes"
    calls = len(reverted_calls(rewind))
    if calls and rewind.scope != "files":
        state = "applied again" if rewind.reverts else "marked as reverted"
        yield f"  {format_count(calls, 'later call')} {state}"
    if survey.irreversible:
        yield "Cannot be undone; the effects of these calls stay:"
    for call in survey.irreversible:
        background = "in the background " if call.arguments.get("background") else ""
        if command := call.arguments.get("command"):
            yield escape(f"  {background}$ {command}")
        else:
            yield escape(f"  {call.tool_name or 'a call'} {json.dumps(dict(call.arguments))}")
        if call.changed_files is not None:
            yield escape(f"    changed: {format_names(call.changed_files, call.changed_files_more)}")
    yield from (escape(f"Conflict: {conflict.path}: {conflict.why}") for conflict in survey.conflicts)


def reverted_calls(rewind: Rewind) -> list[str]:
    """The calls that the rewind marks as reverted, or its undo applies again; those of sub-agents last."""
    calls_of_subagents = [call for one in rewind.sub_agents for call in one.calls]
    return [call_id for call_id, _ in (*rewind.calls, *calls_of_subagents)]
