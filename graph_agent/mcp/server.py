"""One server: started in the background, restarted once after a crash, ended with the session.

A call that was running when the server went away is not repeated, because its effect is unknown.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import McpError
from mcp.shared.session import ProgressFnT
from mcp.types import CallToolResult, Tool

from graph_agent.config.settings import McpServer
from graph_agent.events import ServerStage
from graph_agent.mcp.client import MAX_TOOLS, InvalidResult, McpSession, Signals, open_mcp_session
from graph_agent.mcp.errors import ServerNotReady, explain_error, is_connection_closed, sandbox_hint
from graph_agent.mcp.settings import ServerUnreachable, server_file
from graph_agent.mcp.transport import ServerLog
from tools.sandbox import Sandbox

__all__ = ["ManagedServer", "McpEnvironment", "ServerFailed", "ServerState"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_RUNS = 2
"""How often a server is started: it may crash once."""
_LAST_ANSWER_S = 0.2
_MAX_ERROR = 1_000
_RELIST_INTERVAL_S = 1.0
"""Shortest time between two listings of its tools: some servers announce a change with every listing."""
_RELIST_TIMEOUT_S = 30.0


class ServerFailed(Exception):
    """A call could not be made, or was lost with the server; the message is for the model."""


@dataclass(frozen=True)
class McpEnvironment:
    """What the servers of a session share."""

    folder: Path
    """Their working directory, and the root that they are given."""
    logs: Path
    """Folder for their standard error."""
    warn: Callable[[str], None]
    sandbox: Sandbox | None = None
    on_state: Callable[["ServerState"], None] = lambda _: None
    """Called at each change of a server."""


@dataclass(frozen=True)
class ServerState:
    """The state of one server."""

    name: str
    state: ServerStage
    tools: int = 0
    """How many of its tools are offered."""
    reason: str = ""
    """Why it was restarted, or failed."""


class ManagedServer:
    """Start it with `start`, end it with `close`."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        environment: McpEnvironment,
        on_tools: Callable[["ManagedServer", list[Tool]], int],
    ) -> None:
        self.name = name
        self.server = server
        self.log = ServerLog(server_file(environment.logs, name, ".log"))
        self.failure = ""
        """Why it no longer runs; empty while it starts or runs."""
        self._environment = environment
        self._on_tools = on_tools
        self._session: McpSession | None = None
        self._signals = Signals()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._listed: list[Tool] = []
        self._is_over = False

    def start(self) -> None:
        """Start it in the background."""
        self._report("starting")
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    @property
    def is_ready(self) -> bool:
        """Whether its tools are known, or never will be."""
        return self._session is not None or self._is_over

    async def wait_until_ready(self) -> None:
        """Wait until its tools are known, or never will be."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_ready)

    @property
    def failure_message(self) -> str:
        """For the model, when it calls a tool of a failed server; empty while it starts or runs."""
        if not self.failure:
            return ""
        return f"The MCP server {self.name!r} is not running: {self.failure}. Continue without it."

    async def close(self) -> None:
        """End it and all its processes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool by the server's own name for it.

        Raises:
            ServerFailed: the server is not running, went away during the call, or returned an error.
            TimeoutError: it took longer than its setting allows; the server was told to stop.
        """
        session = await self._running_session()
        server = f"The MCP server {self.name!r}"
        try:
            async with asyncio.timeout(self.server.timeout):
                return await _unless_lost(session.call(tool, arguments, progress), self._signals.lost)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ServerFailed(f"{server} went away before the call was sent. Try again.") from error
        except _ServerLost as error:
            raise ServerFailed(
                f"{server} went away during the call. The call may have taken effect: check before you repeat it."
            ) from error
        except McpError as error:
            raise ServerFailed(f"{server} returned an error: {error.error.message[:_MAX_ERROR]}") from error
        except InvalidResult as error:
            raise ServerFailed(
                f"{server} returned an invalid result. The call may have taken effect: check before you repeat it."
            ) from error

    async def _running_session(self) -> McpSession:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._is_over or (self._session is not None and not self._signals.lost.is_set())
            )
        if self._session is None:
            raise ServerFailed(self.failure_message)
        return self._session

    async def _run(self) -> None:
        for run in range(1, _MAX_RUNS + 1):
            reason = await self._run_once()
            was_ready = self._session is not None
            await self._set_session(None)
            if not was_ready or run == _MAX_RUNS:
                self.failure = reason
                self._is_over = True
                self._environment.warn(f"MCP server {self.name!r}: {reason}. Its tools are not available.")
                self._on_tools(self, [])
                self._report("failed", reason=reason)
                await self._set_session(None)
                return
            self._environment.warn(f"MCP server {self.name!r}: {reason}. Restarting it once.")
            self._report("restarting", reason=reason)

    async def _run_once(self) -> str:
        """Run it until it ends; returns the reason."""
        signals = self._signals = Signals()
        try:
            self.log.begin()
            async with AsyncExitStack() as stack:
                session = await self._open_session(stack, signals)
                while not signals.lost.is_set():
                    await _wait_for_any(signals.lost, signals.tools_changed)
                    if signals.tools_changed.is_set() and not signals.lost.is_set():
                        signals.tools_changed.clear()
                        await self._list_again(session)
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(signals.lost.wait(), _RELIST_INTERVAL_S)
        except Exception as error:  # noqa: BLE001 - the boundary to servers, which fail in every way there is
            is_expected = isinstance(error, ServerUnreachable | ServerNotReady)
            _log.warning("the MCP server %s failed", self.name, exc_info=not is_expected)
            hint = sandbox_hint(error, self.name, self.server, self._environment.sandbox, self.log)
            return f"{explain_error(error, self.name, self.server, self.log)}{hint}"
        return "it exited"

    async def _open_session(self, stack: AsyncExitStack, signals: Signals) -> McpSession:
        environment, limit = self._environment, self.server.startup_timeout
        opening = open_mcp_session(self.server, environment.folder, self.log, signals, environment.sandbox)
        try:
            async with asyncio.timeout(limit):
                session = await stack.enter_async_context(opening)
                tools = await session.tools()
        except TimeoutError as error:
            raise ServerNotReady(
                f"it did not answer within {limit:g} s (setting mcp_servers.{self.name}.startup_timeout)"
            ) from error
        self._update_tools(tools)
        await self._set_session(session)
        return session

    async def _list_again(self, session: McpSession) -> None:
        """Follow a change of its tools; if it cannot list them now, the known ones stay."""
        try:
            async with asyncio.timeout(_RELIST_TIMEOUT_S):
                tools = await _unless_lost(session.tools(), self._signals.lost)
        except (TimeoutError, McpError, _ServerLost, ValueError):
            _log.warning("the MCP server %s could not list its tools again", self.name, exc_info=True)
            return
        if tools != self._listed:
            self._update_tools(tools)
            await self._set_session(session)

    def _update_tools(self, tools: list[Tool]) -> None:
        self._listed = tools
        if len(tools) > MAX_TOOLS:
            self._environment.warn(
                f"MCP server {self.name!r} lists more than {MAX_TOOLS} tools; only the first {MAX_TOOLS} are used. "
                f"Select tools with the setting mcp_servers.{self.name}.tools."
            )
        self._report("running", self._on_tools(self, tools[:MAX_TOOLS]))

    def _report(self, state: ServerStage, tools: int = 0, reason: str = "") -> None:
        self._environment.on_state(ServerState(self.name, state, tools, reason))

    async def _set_session(self, session: McpSession | None) -> None:
        async with self._changed:
            self._session = session
            self._changed.notify_all()


class _ServerLost(Exception):
    """The server went away during a request."""


async def _unless_lost(request: Coroutine[Any, Any, T], lost: asyncio.Event) -> T:
    """The result of a request; `_ServerLost` if the server goes away first, whatever the SDK raises then."""
    running, gone = asyncio.ensure_future(request), asyncio.ensure_future(lost.wait())
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        # An answer may have been read just before the end.
        await asyncio.wait({running}, timeout=_LAST_ANSWER_S)
        if not running.done():
            raise _ServerLost
        return running.result()
    except McpError as error:
        if not is_connection_closed(error):
            raise
        raise _ServerLost from error
    finally:
        gone.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait({running})


async def _wait_for_any(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
