"""The agent's end of the protocol: its methods, the sessions that are open, and the life of the process.

`jsonrpc.py` carries the messages. `session.py` is one open thread; its questions are asked by `questions.py`.
`updates.py` translates events, `tool_calls.py` calls, and `prompts.py` what the user sends. `choices.py` holds what
a client can choose from.
"""

import asyncio
import importlib
import logging
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.acp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    Connection,
    LineWriter,
    PeerError,
    Reply,
    RpcError,
    read_lines,
)
from graph_agent.app.reader import read_database
from graph_agent.errors import NothingYet
from graph_agent.events import EventBus

if TYPE_CHECKING:
    from graph_agent.acp.session import ClientSession
    from graph_agent.session.turn_result import TurnResult

__all__ = ["AgentOptions", "serve"]

PROTOCOL_VERSION = 1
_STDIN = 0
_PAGE = 50
"""Sessions on one page of the list."""
_MAX_DIGITS = 12
"""Of a cursor."""
_WRITE_S = 2.0
_BUFFER_S = 5.0
"""How long the client may take to return the text of a file."""
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_STOP_REASONS: Mapping[str, str] = {"stopped": "cancelled", "limit": "max_turn_requests"}
_log = logging.getLogger(__name__)
_ENDS_IN_ERROR = ("model_error", "failed", "held", "resumable")


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What the command line says."""

    database: Path
    flags: Mapping[str, Any] = field(default_factory=dict)
    """For `open_session`, for every session."""
    on_loaded: Callable[[], None] = lambda: None
    """Called once all modules are loaded."""


def serve(options: AgentOptions, write: Callable[[str], None]) -> int:
    """Serve the client on stdin until that ends, or a signal comes; returns the number of the signal, or 0.

    Ctrl-C first stops the turns that run, as in the chat.

    Args:
        write: the only way to stdout; writes all of a text.
    """
    return asyncio.run(_serve(options, write))


async def _serve(options: AgentOptions, write: Callable[[str], None]) -> int:
    writer = LineWriter(write)
    agent = _Agent(options)
    connection = Connection(writer.send, agent.handle)
    agent.client = connection
    loop = asyncio.get_running_loop()
    caught: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not caught.done() and not (number == signal.SIGINT and agent.stop_turns()):
            caught.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    reading = loop.create_task(_read(connection))
    ends: set[asyncio.Future[Any]] = {reading, caught}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    reading.cancel()
    await agent.close()
    await connection.close()
    writer.close(_WRITE_S)
    return caught.result() if caught.done() else 0


async def _read(connection: Connection) -> None:
    async for kind, line in read_lines(_STDIN):
        if kind == "long":
            connection.refuse_long_line()
        else:
            connection.receive(line)


class _Agent:
    """The methods that a client may call."""

    client: Connection

    def __init__(self, options: AgentOptions) -> None:
        self._options = options
        self._sessions: dict[str, ClientSession] = {}
        self._opening: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One for each thread: another one does not wait for the MCP servers of this one."""
        self._loading: asyncio.Future[Any] | None = None
        self._can_read_buffers = False
        """Whether the client returns the text of files, saved or not."""
        self._methods: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Reply]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": partial(self._open_existing, replays=True),
            "session/resume": partial(self._open_existing, replays=False),
            "session/list": self._list,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/close": self._close_session,
        }

    async def handle(self, method: str, params: Mapping[str, Any]) -> Reply:
        """Serve one request or notification."""
        if (serve_method := self._methods.get(method)) is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method[:100]!r}.")
        return await serve_method(params)

    def stop_turns(self) -> bool:
        """Stop every running turn without waiting for its end; returns whether there was one."""
        busy = [session for session in self._sessions.values() if session.is_busy]
        for session in busy:
            session.begin_stop()
        return bool(busy)

    async def close(self) -> None:
        """Close every session, so that the next process continues its thread."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    async def _initialize(self, params: Mapping[str, Any]) -> Reply:
        _given(params, "protocolVersion", int)
        self._can_read_buffers = _reads_files(params.get("clientCapabilities"))
        result = {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
            },
            "agentInfo": {"name": "graph-agent", "title": "graph-agent", "version": version("graph-agent")},
            "authMethods": [],
        }
        return Reply(result, self._begin_loading)

    def _begin_loading(self) -> None:
        """Load what a session needs while the client is still about to ask for one."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(_load_modules))

    async def _new(self, params: Mapping[str, Any]) -> Reply:
        session = await self._open(params, None, None, "")
        return self._opened(session, {"sessionId": session.id, **session.state}, is_new=True)

    async def _open_existing(self, params: Mapping[str, Any], *, replays: bool) -> Reply:
        """Open a thread; the client gets its conversation, unless it has that already."""
        session_id = _given(params, "sessionId", str)
        with read_database(self._options.database) as reader:
            target = reader.resolve(session_id, None, ("thread", "checkpoint"))
            thread = reader.thread(target.thread_id)
            entries = list(reader.iter_messages(target.thread_id)) if replays else []
            views = reader.calls(target.thread_id)
        is_older = target.kind == "checkpoint" and target.id != thread.checkpoint_id
        if not params.get("cwd"):
            params = {**params, "cwd": thread.workspace}
        session = await self._open(params, thread.thread_id, target.id if is_older else None, session_id)
        session.replay(entries, views)
        return self._opened(session, session.state, is_new=False)

    def _opened(self, session: "ClientSession", result: Mapping[str, Any], *, is_new: bool) -> Reply:
        """The answer comes first: until then the client does not know the session."""
        return Reply(result, partial(session.begin, is_new=is_new))

    async def _open(
        self, params: Mapping[str, Any], thread_id: str | None, checkpoint_id: str | None, session_id: str
    ) -> "ClientSession":
        folder = _given(params, "cwd", str)
        if not Path(folder).is_absolute():
            raise RpcError(INVALID_PARAMS, f"cwd must be an absolute path; it is {folder!r}.")
        flags = {
            **self._options.flags,
            "db": self._options.database,
            "awaits_servers": True,
            "may_choose_model": True,
            "mcp_servers": _server_tables(params.get("mcpServers")),
            "add_dirs": _folders(params.get("additionalDirectories")),
            **({"checkpoint_id": checkpoint_id} if checkpoint_id else {}),
        }
        self._begin_loading()
        if self._loading is not None:
            await self._loading
        self._options.on_loaded()
        async with self._opening[thread_id] if thread_id else nullcontext():
            for known in [one for one in self._sessions.values() if one.session.thread_id == thread_id]:
                await self._sessions.pop(known.id).close()
            buffers = _ClientBuffers(self.client) if self._can_read_buffers else None
            session = await _open_session(
                self.client, Path(folder), thread_id, session_id, {**flags, "read_buffer": buffers}
            )
            self._sessions[session.id] = session
        return session

    async def _list(self, params: Mapping[str, Any]) -> Reply:
        folder, cursor = params.get("cwd"), params.get("cursor") or "0"
        if not isinstance(cursor, str) or not cursor.isascii() or not cursor.isdigit() or len(cursor) > _MAX_DIGITS:
            raise RpcError(INVALID_PARAMS, "cursor is not one that this list has given.")
        return Reply(await asyncio.to_thread(_list_threads, self._options.database, folder, int(cursor)))

    async def _prompt(self, params: Mapping[str, Any]) -> Reply:
        from graph_agent.acp.prompts import read_prompt  # noqa: PLC0415 - loaded with the first session

        session = self._session(params)
        stops = session.stops
        prompt = await asyncio.to_thread(read_prompt, params.get("prompt"))
        return Reply(_prompt_result(await session.prompt(prompt, stops)))

    async def _cancel(self, params: Mapping[str, Any]) -> Reply:
        await self._session(params).stop()
        return Reply({})

    async def _set_mode(self, params: Mapping[str, Any]) -> Reply:
        await self._session(params).set_mode(_given(params, "modeId", str))
        return Reply({})

    async def _set_option(self, params: Mapping[str, Any]) -> Reply:
        key, value = _given(params, "configId", str), _given(params, "value", str)
        return Reply({"configOptions": await self._session(params).set_option(key, value)})

    async def _close_session(self, params: Mapping[str, Any]) -> Reply:
        session = self._session(params)
        del self._sessions[session.id]
        await session.close()
        return Reply({})

    def _session(self, params: Mapping[str, Any]) -> "ClientSession":
        session_id = _given(params, "sessionId", str)
        if session_id not in self._sessions:
            raise RpcError(NOT_FOUND, f"Session {session_id[:100]!r} is not open. Open it with session/load.")
        return self._sessions[session_id]


def _load_modules() -> None:
    for name in ("graph_agent.app.opening", "graph_agent.app.session_parts", "graph_agent.acp.session"):
        importlib.import_module(name)


async def _open_session(
    client: Connection, folder: Path, thread_id: str | None, session_id: str, flags: Mapping[str, Any]
) -> "ClientSession":
    """Open a thread; what happens meanwhile is sent once the client knows the session."""
    from graph_agent.acp.session import ClientSession  # noqa: PLC0415 - loaded in a thread by now
    from graph_agent.acp.updates import SessionUpdates  # noqa: PLC0415 - as above
    from graph_agent.app.opening import open_session  # noqa: PLC0415 - as above

    bus = EventBus(begins_with="started")
    session = await open_session(workspace=folder, thread_id=thread_id, flags=flags, bus=bus)
    session_id = session_id or session.thread_id
    if flags["read_buffer"] is not None:
        flags["read_buffer"].session_id = session_id

    def send(update: Mapping[str, Any]) -> None:
        client.notify("session/update", {"sessionId": session_id, "update": update})

    updates = SessionUpdates(send, session.workspace)
    bus.subscribe(updates.take)
    trusts_once = bool(flags.get("trust"))
    return ClientSession(session_id, session, client, updates, flags["db"], trusts_once=trusts_once)


class _ClientBuffers:
    """A `ReadBuffer` that asks the client, with `fs/read_text_file`."""

    def __init__(self, client: Connection) -> None:
        self.session_id = ""
        """Empty until the client knows the session; before that it cannot be asked."""
        self._client = client

    async def __call__(self, path: Path) -> str | None:
        if not self.session_id:
            return None
        try:
            async with asyncio.timeout(_BUFFER_S):
                asked = {"sessionId": self.session_id, "path": str(path)}
                answer = await self._client.request("fs/read_text_file", asked)
        except PeerError as error:
            _log.info("the client does not read %s: %s", path, error)
            return None
        content = answer.get("content") if isinstance(answer, Mapping) else None
        return content if isinstance(content, str) else None


def _prompt_result(result: "TurnResult") -> Mapping[str, Any]:
    """The answer to a prompt.

    Raises:
        RpcError: the turn failed.
    """
    if result.status in _ENDS_IN_ERROR:
        raise RpcError(INTERNAL_ERROR, result.error or "The turn was interrupted before the model answered.")
    reason = _STOP_REASONS.get(result.status, "end_turn")
    if result.status == "limit" and result.budget == "max_tokens":
        reason = "max_tokens"
    usage = result.usage
    counts = {
        "totalTokens": usage.get("total_tokens") or 0,
        "inputTokens": usage.get("input_tokens") or 0,
        "outputTokens": usage.get("output_tokens") or 0,
        "thoughtTokens": usage.get("reasoning_tokens") or 0,
        "cachedReadTokens": usage.get("cached_input_tokens") or 0,
    }
    return {"stopReason": reason, "usage": counts}


def _list_threads(database: Path, folder: object, start: int) -> Mapping[str, Any]:
    """One page of the list of sessions; without the threads of sub-agents, which only their parent continues."""
    try:
        with read_database(database) as reader:
            threads = [one for one in reader.threads() if one.parent_call is None]
            if isinstance(folder, str):
                wanted = str(Path(folder).resolve())
                threads = [one for one in threads if one.workspace in (folder, wanted)]
            page = threads[start : start + _PAGE]
            sessions = [
                {
                    "sessionId": thread.thread_id,
                    "cwd": thread.workspace,
                    "title": thread.title,
                    "updatedAt": thread.updated_at,
                    "additionalDirectories": list(reader.roots(thread.thread_id)),
                }
                for thread in page
            ]
    except NothingYet:
        return {"sessions": []}
    more = {"nextCursor": str(start + _PAGE)} if start + _PAGE < len(threads) else {}
    return {"sessions": sessions, **more}


def _given(params: Mapping[str, Any], name: str, kind: type) -> Any:
    """A parameter of this type.

    Raises:
        RpcError: it is missing or something else.
    """
    value = params.get(name)
    if not isinstance(value, kind) or isinstance(value, bool) or value == "":
        expected = {str: "a string", int: "a number"}[kind]
        raise RpcError(INVALID_PARAMS, f"{name} must be {expected}{' that is not empty' if value == '' else ''}.")
    return value


def _reads_files(capabilities: object) -> bool:
    files = capabilities.get("fs") if isinstance(capabilities, Mapping) else None
    return isinstance(files, Mapping) and files.get("readTextFile") is True


def _folders(given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) and Path(one).is_absolute() for one in given):
        raise RpcError(INVALID_PARAMS, "additionalDirectories must be a list of absolute paths.")
    return tuple(given)


def _server_tables(given: object) -> dict[str, dict[str, Any]]:
    """The MCP servers that the client hands over, as tables of the settings.

    Raises:
        RpcError: one of them cannot be used.
    """
    if not isinstance(given, list | None):
        raise RpcError(INVALID_PARAMS, "mcpServers must be a list.")
    tables: dict[str, dict[str, Any]] = {}
    for server in given or ():
        if not isinstance(server, Mapping):
            raise RpcError(INVALID_PARAMS, "An MCP server must be an object.")
        name = _given(server, "name", str)
        if server.get("type") in ("sse", "acp"):
            raise RpcError(INVALID_PARAMS, f"MCP server {name!r}: only stdio and http are supported.")
        if "url" in server:
            tables[name] = {"url": server["url"], "headers": _pairs(server.get("headers"), name)}
        else:
            tables[name] = {
                "command": _given(server, "command", str),
                "args": server.get("args") or [],
                "env": _pairs(server.get("env"), name),
            }
    return tables


def _pairs(given: object, server: str) -> dict[str, Any]:
    pairs = given or []
    if not isinstance(pairs, list) or not all(isinstance(one, Mapping) and "name" in one for one in pairs):
        raise RpcError(INVALID_PARAMS, f"MCP server {server!r}: env and headers are lists of objects with a name.")
    return {str(one["name"]): one.get("value", "") for one in pairs}
