"""Open sessions: settings, store and queued message first, then what needs the graph and the model library.

What is loaded with this module is only what the first request of a run is made of, so that it can leave early.
"""

import asyncio
import importlib
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.app.models import settings_for_choice
from graph_agent.app.named_agents import NO_AGENT, agent_of_thread
from graph_agent.app.project_trust import project_at, project_notices
from graph_agent.app.thread_start import (
    EarlyFacts,
    OpenRequest,
    StartedThread,
    create_row,
    hold_thread,
    prepare_first_request,
)
from graph_agent.app.toolset import full_registry, policy_of, sandbox_of
from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import folder_at
from graph_agent.config.project import Project
from graph_agent.config.settings import Settings
from graph_agent.config.sources import load_settings, stricter_mode, with_model
from graph_agent.errors import UsageError
from graph_agent.events import EventBus, WarningIssued
from graph_agent.storage import thread_lock
from graph_agent.storage.sqlite.threads import ThreadRow, ThreadTable, open_store
from tools.agent_ops.new_task import NamedAgent

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["existing_folder", "open_session"]

_FLAG_SETTINGS = {
    "db": "database",
    "mode": "mode",
    "model": "model.name",
    "effort": "model.effort",
    **{name: name for name in ("max_steps", "max_tokens", "max_cost")},
    "notify_after": "notify.after",
}
"""Command-line flags and the setting that each one gives."""
_OTHER_FLAGS = (
    *("add_dirs", "agent", "attached", "awaits_servers", "checkpoint_id", "deletes_empty", "may_choose_model"),
    *("mcp_servers", "model_left", "no_stream", "notify", "prompt", "read_buffer", "sends_prompt", "trust"),
    "when_held",
)


async def open_session(
    *,
    workspace: Path,
    thread_id: str | None = None,
    flags: Mapping[str, Any] | None = None,
    bus: EventBus | None = None,
) -> "Session":
    """Open a thread in this process, a new one if `thread_id` is None or unknown, and hold it until `close`.

    Args:
        workspace: the folder the thread with this whole id works in; an existing thread moves there.
        flags: `add_dirs`, `db`, `effort`, `mode`, `model`, `max_steps`, `max_tokens`, `max_cost`, `no_stream`,
            `notify_after` in place of settings. `agent` is that of a new thread. `checkpoint_id` is an older one to
            branch from. `may_choose_model` leaves an unclear model to `Session.switch_model`. `model_left` names
            the `thread` that a chat leaves, and the `name` of its model for the new one. `awaits_servers` waits for
            MCP servers, at most `mcp_wait`; `mcp_servers` adds tables of them. `notify` is "desktop" or a webhook's
            address. `trust` trusts the project here. `attached` files may be read anywhere, `prompt` comes first;
            with `sends_prompt` nothing else is done before it is sent. `when_held` gets the `HeldThread` as soon
            as messages can be stored; with `deletes_empty` a thread without a message is deleted by `close`.
            `read_buffer` asks the user's editor.
        bus: receives the session's events.

    Raises:
        ConfigError: a setting is wrong.
        ThreadHeld: another process holds the thread.
        StorageError: the database cannot be used.
        UsageError: a flag is unknown or wrong; no model can be chosen; the cost is limited but unknown.
    """
    given, bus, folder = dict(flags or {}), bus or EventBus(), await asyncio.to_thread(existing_folder, workspace)
    project = await asyncio.to_thread(project_at, folder, once=bool(given.get("trust")))
    settings = load_settings(os.environ, flags=_settings_in_flags(given), project=project)
    policy_of(settings)  # A wrong rule is reported before there is a thread.
    request = OpenRequest.from_flags(folder, thread_id, given)
    async with AsyncExitStack() as opened:
        session = await _open(request, settings, bus, opened)
        for notice in await asyncio.to_thread(_opening_notices, settings, project):
            bus.publish(WarningIssued(notice))
        opened.pop_all()
    return session


def _settings_in_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {*_FLAG_SETTINGS, *_OTHER_FLAGS}
    if unknown := given.keys() - known:
        raise UsageError(
            f"open_session has no flag {', '.join(map(repr, sorted(unknown)))}. It has {', '.join(sorted(known))}."
        )
    values = {key: given[flag] for flag, key in _FLAG_SETTINGS.items() if given.get(flag) is not None}
    values |= {"model.stream": "off"} if given.get("no_stream") else {}
    match given.get("notify"):
        case None:
            return values
        case "desktop":
            return values | {"notify.desktop": True}
        case str(address) if address.startswith(("http://", "https://")):
            return values | {"notify.webhook": address}
        case unknown:
            shown = display_url(unknown) if "://" in unknown else unknown
            raise UsageError(f"--notify {shown!r} is neither desktop nor an address with http:// or https://.")


def _opening_notices(settings: Settings, project: Project) -> list[str]:
    """What of the project is ignored, and whether commands cannot commit in its folder."""
    sandbox = sandbox_of(settings, project.folder)
    git = sandbox.closed_repository() if sandbox else None
    if git is None:
        return [*project_notices(project)]
    closed = (
        f"Commands cannot commit here: in the sandbox the repository {git}, which lies outside the workspace, is "
        "read-only. To allow it, add that folder to the setting sandbox_write."
    )
    return [*project_notices(project), closed]


def existing_folder(workspace: Path) -> Path:
    """The folder to work in, resolved.

    Raises:
        UsageError: there is no such folder.
    """
    folder = folder_at(workspace)
    if folder is None:
        raise UsageError(f"The workspace {str(workspace)!r} is not a folder. Create it, or choose another one.")
    return folder


async def _open(request: OpenRequest, settings: Settings, bus: EventBus, opened: AsyncExitStack) -> "Session":
    store = await open_store(settings.database)
    threads, workspace = store.threads, request.workspace
    opened.push_async_callback(store.database.close)
    settings = await _with_thread_model(request, settings, threads, bus)
    row = await threads.get(request.thread_id) if request.thread_id else None
    lock = thread_lock(store.database, store.clock, lambda text: bus.publish(WarningIssued(text)))
    is_new, held = row is None, None
    takes_messages = bool(request.prompt or request.when_held)
    if takes_messages and not request.agent:  # Which agents there are is known only once the plug-ins are loaded.
        row = row or await create_row(request, settings, NO_AGENT, threads)
        held = await hold_thread(request, row, store, lock, opened)
    registry, unusable = await asyncio.to_thread(full_registry, workspace, settings)
    agent = await asyncio.to_thread(agent_of_thread, row.agent if row else None, request.agent, settings, registry)
    request, settings = _apply_agent(agent, request, settings, row)
    if takes_messages and held is None:
        row = row or await create_row(request, settings, agent, threads)
        held = await hold_thread(request, row, store, lock, opened)
    first = None
    if row is not None and held is not None and is_new:
        first = await prepare_first_request(EarlyFacts(request, settings, registry), row, store)
        if first is not None:
            opened.push_async_callback(first.sender.close)
            await held.prepare(first)
    # From here on the graph and the model library are needed, which take most of the time until a session is open.
    await asyncio.to_thread(importlib.import_module, "graph_agent.app.session_parts")
    from graph_agent.app.session_parts import open_thread  # noqa: PLC0415 - only now is it loaded

    early = first.sender if first else None
    started = StartedThread(store, lock, row, registry, unusable, agent, early)
    return await open_thread(request, settings, started, bus, opened)


def _apply_agent(
    agent: NamedAgent, request: OpenRequest, settings: Settings, row: ThreadRow | None
) -> tuple[OpenRequest, Settings]:
    """The request and settings with the model and mode of an agent, unless the user chose others."""
    if agent.model and not request.names_model and (row is None or not row.model_choice):
        request, settings = replace(request, names_model=True), with_model(settings, agent.model)
    if row is None and not request.names_mode:
        settings = settings.model_copy(update={"mode": stricter_mode(agent.mode, settings.mode)})
    return request, settings


async def _with_thread_model(
    request: OpenRequest, settings: Settings, threads: ThreadTable, bus: EventBus
) -> Settings:
    """The settings with the model that was chosen for the thread, unless another is asked for now."""
    if request.model_left:
        left = await threads.get(request.model_left["thread"])
        chosen = settings_for_choice(settings, left.model_choice) if left and left.model_choice else None
        return chosen or with_model(settings, request.model_left["name"])
    row = await threads.get(request.thread_id) if request.thread_id and not request.names_model else None
    if row is None or not row.model_choice:
        return settings
    chosen = settings_for_choice(settings, row.model_choice)
    if chosen is None:
        bus.publish(WarningIssued(f"The thread's model, {row.model}, is not available. Another model answers."))
    return chosen or settings
