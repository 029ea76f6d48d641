"""A thread before its session is open: what was asked for, its row, its queued message, and the first request.

The first request of a run, and that of a chat, leaves here while the graph and the model library are still to be
loaded. It is made by the code that makes the turn's own one: settings, tools, instructions, encoder. The turn makes
its request all the same, and the model takes the early answer over only if both are equal, byte for byte. Where
something may still change the request, or forbid it, a row of `REASONS_AGAINST` says so, and nothing is sent before
the turn.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph_agent.app.instructions import prompt_now
from graph_agent.app.models import budget_of
from graph_agent.app.named_agents import agent_to_json, load_agents, register_new_task
from graph_agent.app.toolset import requested_roots, roots_of, rules_of
from graph_agent.config.mcp_servers import validate_server
from graph_agent.config.model_choice import choose_model, display_url
from graph_agent.config.paths import capabilities_file, own_command
from graph_agent.config.settings import McpServer, Settings
from graph_agent.errors import AgentError, UsageError
from graph_agent.graph.run_context import new_owner_token
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore, apply_settings
from graph_agent.model.openai.context_windows import known_context_window
from graph_agent.model.openai.early_request import EarlyRequest
from graph_agent.model.openai.request_body import PlainMessage, RequestEncoder
from graph_agent.ports.model import ASSUMED_TOKENS
from graph_agent.ports.stored_text import storable
from graph_agent.ports.toolbox import ReadBuffer
from graph_agent.ports.usage import UNLIMITED, estimate_tokens
from graph_agent.session.message_input import MessageQueue
from graph_agent.storage import DatabaseLock, thread_lock
from graph_agent.storage.sqlite.threads import SqliteInbox, Store, ThreadRow, ThreadTable
from graph_agent.toolbox.toolbox import build_declarations, denied_tools
from tools.agent_ops.new_task import NamedAgent
from tools.proxies import ProxyUnusable, proxy_for
from tools.registry import ToolRegistry

__all__ = [
    "REASONS_AGAINST",
    "EarlyFacts",
    "FirstRequest",
    "HeldThread",
    "OpenRequest",
    "StartedThread",
    "create_row",
    "hold_thread",
    "prepare_first_request",
    "reason_against",
    "reject_sub_agent",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What the caller wants to open."""

    workspace: Path
    thread_id: str | None
    names_model: bool
    """The model was named, or is taken over from the thread that is left; it is stored with the thread."""
    model_left: Mapping[str, str]
    """The `thread` that a chat leaves and the `name` of its model; empty at the start of a chat."""
    names_mode: bool
    """The mode was given on the command line, which outranks the stored one."""
    from_checkpoint: str | None
    may_choose_model: bool
    """Whether a person can be asked for the model; otherwise an unclear one is an error."""
    awaits_servers: bool
    add_dirs: tuple[str, ...]
    """Folders to add to those that the thread has."""
    attached: tuple[str, ...]
    """Files that the user named on the command line."""
    read_buffer: ReadBuffer | None
    agent: str
    """Name of the agent that a new thread works as; empty for none."""
    prompt: str
    """The first message, to be queued before anything that takes time; empty for none."""
    when_held: "Callable[[HeldThread], None] | None"
    """Called once this process holds the thread, so that what a person enters while the rest loads is stored."""
    deletes_empty: bool
    """Whether a thread that has no message when it is closed is deleted."""
    sends_prompt: bool
    """Whether the caller sends exactly that message next, whatever it finds when the session is open."""
    servers: Mapping[str, McpServer]
    """MCP servers that the user's editor adds."""

    @classmethod
    def from_flags(cls, folder: Path, thread_id: str | None, given: Mapping[str, Any]) -> "OpenRequest":
        """What `open_session` was asked for."""
        return cls(
            workspace=folder,
            thread_id=thread_id,
            names_model=bool(given.get("model") or given.get("model_left")),
            model_left=given.get("model_left") or {},
            names_mode="mode" in given,
            from_checkpoint=given.get("checkpoint_id"),
            may_choose_model=bool(given.get("may_choose_model")),
            awaits_servers=bool(given.get("awaits_servers")),
            add_dirs=tuple(given.get("add_dirs") or ()),
            attached=tuple(given.get("attached") or ()),
            read_buffer=given.get("read_buffer"),
            agent=str(given.get("agent") or ""),
            prompt=str(given.get("prompt") or ""),
            when_held=given.get("when_held"),
            deletes_empty=bool(given.get("deletes_empty")),
            sends_prompt=bool(given.get("sends_prompt")),
            servers={name: validate_server(name, one) for name, one in (given.get("mcp_servers") or {}).items()},
        )


@dataclass(frozen=True, slots=True)
class StartedThread:
    """A thread whose session is opened as soon as the graph and the model library are loaded."""

    store: Store
    lock: DatabaseLock
    row: ThreadRow | None
    """None: nothing is stored yet; the thread is made once its model is known."""
    registry: ToolRegistry
    unusable: tuple[str, ...]
    """A line for each plug-in that cannot be used."""
    agent: NamedAgent
    early: EarlyRequest | None = None


async def create_row(
    request: OpenRequest, settings: Settings, agent: NamedAgent, threads: ThreadTable
) -> ThreadRow:
    """A new thread; without approvals it is only as long as this process works on it."""
    mode = "default" if settings.mode == "bypassPermissions" else settings.mode
    thread_id, stored = request.thread_id or uuid4().hex, agent_to_json(agent)
    return await threads.create(thread_id, str(request.workspace), "", mode, stored)


class HeldThread:
    """The queue of a thread that this process holds while its session is still being opened.

    The first message of a new thread is sent at once, if its request may leave early.
    """

    def __init__(self, row: ThreadRow, workspace: Path, store: Store) -> None:
        self.thread_id = row.thread_id
        self.workspace = workspace
        self.was_kept = False
        """Whether what was queued here waits for a later run, although the session could not be opened."""
        self._inbox = SqliteInbox(store.database, store.clock)
        self._messages = MessageQueue(self._inbox, row.thread_id, f"pid {os.getpid()}")
        self._queued: dict[int, str] = {}
        self._first: FirstRequest | None = None
        self._may_send = True
        self._lock = asyncio.Lock()

    async def queue(self, text: str, *, is_urgent: bool = False) -> int:
        """Store a message durably; returns its number."""
        async with self._lock:
            first, self._first = self._first, None
            if first is None:
                number = await self._messages.add(text, is_urgent=is_urgent)
            else:
                number = await first.queue_and_send(text)
            self._queued[number] = text
            return number

    async def queued(self) -> list[tuple[int, str]]:
        """Number and text of each waiting message, in the order in which they are sent."""
        return await self._messages.waiting()

    async def remove_queued(self, number: int) -> bool:
        """Delete a waiting message; False if it no longer waits, or if its request has been sent."""
        async with self._lock:
            if await self._inbox.unused_requests(self.thread_id) and number == min(self._queued, default=0):
                return False
            self._queued.pop(number, None)
            return await self._messages.remove(number)

    async def mark_queued_urgent(self) -> int:
        """Make every queued message urgent; returns how many are queued."""
        return await self._messages.mark_urgent()

    def skip_early_request(self) -> None:
        """Send no request early: something else comes before the first message."""
        self._may_send, self._first = False, None

    async def prepare(self, first: "FirstRequest") -> None:
        """From now on the first message is sent at once; one that is queued already is sent now."""
        async with self._lock:
            if not self._may_send:
                return
            if self._queued:
                await first.send(*next(iter(self._queued.items())))
            else:
                first.sender.connect_ahead()
                self._first = first

    async def remove_all(self) -> None:
        """Remove what was queued here, because it cannot be sent, unless a request was already sent for it."""
        async with self._lock:
            self.was_kept = bool(self._queued and await self._inbox.unused_requests(self.thread_id))
            for number in () if self.was_kept else tuple(self._queued):
                await self._inbox.remove(self.thread_id, number)


async def hold_thread(
    request: OpenRequest, row: ThreadRow, store: Store, lock: DatabaseLock, opened: AsyncExitStack
) -> HeldThread:
    """Hold the thread from now on, and store the prompt, if there is one.

    If the session cannot be opened, the queued messages are removed, unless a request was already sent for them; so
    is the thread if it is empty then. After a kill everything stays.
    """
    await reject_sub_agent(row, store)
    await lock.acquire(row.thread_id, new_owner_token())
    if await store.threads.get(row.thread_id) is None:
        # Another process deleted it as a thread without a message, between the look-up and the lock.
        row = await store.threads.create(row.thread_id, row.workspace, row.model, row.mode, row.agent)
    held = HeldThread(row, request.workspace, store)

    async def release(_kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, AgentError):
            await held.remove_all()
        await store.threads.delete_if_empty(row.thread_id, lock)
        await lock.release()

    opened.push_async_exit(release)
    if request.prompt:
        await held.queue(request.prompt)
    if request.when_held is not None:
        request.when_held(held)
    return held


async def reject_sub_agent(row: ThreadRow, store: Store) -> None:
    """Only its parent can continue the thread of a sub-agent: it knows its tools, its limits and its call.

    Raises:
        ThreadHeld: its parent works on it now.
        UsageError: it is such a thread.
    """
    owner = row
    while await store.threads.depth(owner.thread_id):
        above = await store.threads.get(owner.parent_thread or "")
        if above is None:
            break
        owner = above
    if owner is row:
        return
    lock = thread_lock(store.database, store.clock)
    await lock.acquire(row.thread_id, new_owner_token())
    await lock.release()
    raise UsageError(
        f"{row.thread_id} is the thread of a sub-agent. Resume its parent: {own_command()} resume {owner.thread_id}"
    )


_UNKNOWN = Capabilities()


@dataclass(frozen=True, slots=True)
class EarlyFacts:
    """What decides whether the first request leaves early."""

    request: OpenRequest
    settings: Settings
    registry: ToolRegistry
    capabilities: Capabilities = _UNKNOWN
    """What is known of the endpoint."""
    tokens: int = 0
    """How many tokens the request is estimated to have."""

    @property
    def window(self) -> int:
        """The context window of the model, as far as it is known without asking the endpoint."""
        model = self.settings.model
        return model.context_window or known_context_window(model.name or "") or ASSUMED_TOKENS


_CLIENT_VARIABLES = ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS")
"""Variables from which the model library takes more headers."""
_CLIENT_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"),
        *("transfer-encoding", "user-agent"),
    )
)
_MOST_TOKENS = 12_000
"""For a longer request the endpoint is asked for its context window first; see `ModelWindows`."""


def _is_through_proxy(facts: EarlyFacts) -> bool:
    try:
        return proxy_for(facts.settings.model.endpoint) is not None
    except ProxyUnusable:
        return True


REASONS_AGAINST: Mapping[str, Callable[[EarlyFacts], object]] = {
    "early_request is off": lambda facts: facts.settings.early_request == "off",
    "something else may come before the message": lambda facts: not facts.request.sends_prompt,
    "no endpoint answers": lambda facts: choose_model(facts.settings).kind != "endpoint",
    "no model is named": lambda facts: facts.settings.model.name is None,
    "a model is named for the thread": lambda facts: facts.request.model_left,
    "an agent is named": lambda facts: facts.request.agent,
    "files are attached": lambda facts: facts.request.attached,
    "a file may be mentioned": lambda facts: "@" in facts.request.prompt,
    "it may be a command": lambda facts: facts.request.prompt.lstrip().startswith("/"),
    "a hook reads the message": lambda facts: facts.settings.hooks.user_prompt,
    "a hook adds to the message": lambda facts: facts.settings.hooks.session_start,
    "a budget may forbid the request": lambda facts: budget_of(facts.settings) != UNLIMITED,
    "an MCP server may add tools": lambda facts: any(
        server.enabled for server in (*facts.settings.mcp_servers.values(), *facts.request.servers.values())
    ),
    "a tool is not built in": lambda facts: any(
        facts.registry.origin(name) != "builtin" for name in facts.registry.names()
    ),
    "a proxy is used": _is_through_proxy,
    "a variable adds headers": lambda _: any(os.environ.get(name) for name in _CLIENT_VARIABLES),
    "a setting replaces a header of the client": lambda facts: any(
        name.lower() in _CLIENT_HEADERS for name in facts.settings.model.headers
    ),
    "the address holds a secret": lambda facts: (
        display_url(facts.settings.model.endpoint) != facts.settings.model.endpoint
    ),
    "replies are not streamed": lambda facts: not facts.capabilities.streaming,
    "tools are sent as text": lambda facts: not facts.capabilities.function_calling,
    "the request is long": lambda facts: facts.tokens > min(_MOST_TOKENS, facts.window // 2),
}
"""Why the first request does not leave early."""


def reason_against(facts: EarlyFacts) -> str:
    """The first reason that holds; empty for none."""
    return next((reason for reason, holds in REASONS_AGAINST.items() if holds(facts)), "")


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request of a new thread, prepared but for its message."""

    facts: EarlyFacts
    thread_id: str
    inbox: SqliteInbox
    encoder: RequestEncoder
    instructions: PlainMessage
    tools: Sequence[Mapping[str, Any]]
    sender: EarlyRequest

    def encode(self, text: str) -> tuple[bytes, int] | None:
        """Its body with this message, and an estimate of its tokens; None if it must not leave early."""
        messages = [self.instructions, PlainMessage("human", storable(text))]
        body = self.encoder.body(messages, self.tools, self.facts.capabilities)
        request = replace(self.facts.request, prompt=text)
        facts = replace(self.facts, request=request, tokens=estimate_tokens(body.decode()))
        if reason := reason_against(facts):
            _log.debug("no early request: %s", reason)
            return None
        return body, facts.tokens

    async def send(self, number: int, text: str) -> None:
        """Send it with a message that is queued under this number, if that may leave early."""
        encoded = self.encode(text)
        if encoded is None:
            return
        body, tokens = encoded
        await self.inbox.note_early_request(self.thread_id, number, tokens)
        self._send(body, number)
        # Imports would keep it waiting.
        await self.sender.sent(_SEND_S)

    async def queue_and_send(self, text: str) -> int:
        """Store a message and, in the same commit, the record of its request; then send it, if it may leave.

        Returns:
            the number of the message.
        """
        encoded = self.encode(text)
        tokens = encoded[1] if encoded else None
        number = await self.inbox.queue(self.thread_id, text, f"pid {os.getpid()}", early_tokens=tokens)
        if encoded:
            self._send(encoded[0], number)
        return number

    def _send(self, body: bytes, number: int) -> None:
        self.sender.send(body, partial(self.inbox.note_early_request, self.thread_id, number, None))


_SEND_S = 0.02
"""How long loading waits for the early request to leave; to a near server it takes a millisecond or two."""


async def prepare_first_request(facts: EarlyFacts, row: ThreadRow, store: Store) -> FirstRequest | None:
    """The first request of a new thread; None if it must not leave early, whatever the message is."""
    model, name = facts.settings.model, facts.settings.model.name or ""
    learned = CapabilityStore(capabilities_file(facts.settings.database)).load(display_url(model.endpoint), name)
    facts = replace(facts, capabilities=apply_settings(model, learned))
    if reason := reason_against(facts):
        _log.debug("no early request: %s", reason)
        return None
    inbox, today = SqliteInbox(store.database, store.clock), store.clock.now()[:10]

    def prepare() -> FirstRequest:
        request, settings, registry = facts.request, facts.settings, facts.registry
        roots = roots_of(request.workspace, requested_roots(request.add_dirs, settings), settings)
        prompt = prompt_now(request.workspace, settings, roots.usable, today)
        agents = load_agents(settings, os.environ, registry.names())
        register_new_task(registry, request.workspace, agents, may_delegate=settings.max_task_depth > 0)
        mode = settings.mode if request.names_mode else row.mode
        tools = build_declarations(registry, mode, denied_tools(registry, rules_of(settings).deny), (), {})
        encoder, instructions = RequestEncoder(model, name), PlainMessage("system", prompt)
        return FirstRequest(facts, row.thread_id, inbox, encoder, instructions, tools, EarlyRequest(model))

    return await asyncio.to_thread(prepare)
