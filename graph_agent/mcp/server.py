"""One server through its lives: started in the background, started once more after a crash, ended with us.

A call that was under way when the server went away is not made again: what it did until then nobody knows.
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
from graph_agent.mcp.client import MOST_TOOLS, Conversation, NoResult, Signals, opened_conversation
from graph_agent.mcp.errors import NoAnswer, is_closed, way_out, why
from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.settings import ServerUnreachable
from tools.sandbox import Sandbox

__all__ = ["ManagedServer", "McpEnvironment", "ServerFailed", "ServerState"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_LIVES = 2
"""How often a server is started: it may crash once."""
_LAST_WORDS_S = 0.2
_SAID_CHARS = 1_000
_CALM_S = 1.0
"""What passes at least between two looks at its list: some say that it changed whenever they are asked for it."""
_RELISTED_S = 30.0
"""How long a server that says its tools changed may take to list them."""


class ServerFailed(Exception):
    """A call could not be made, or was broken off with the server; the message is for the model."""


@dataclass(frozen=True)
class McpEnvironment:
    """Where servers live, and who hears of them."""

    folder: Path
    """They are started here; what they are told of as their root."""
    logs: Path
    """Folder that takes what they write on their standard error."""
    warn: Callable[[str], None]
    sandbox: Sandbox | None = None
    """What programs are started in."""
    heard: Callable[["ServerState"], None] = lambda _: None
    """Told of each change of a server."""


@dataclass(frozen=True)
class ServerState:
    """How one server is doing."""

    name: str
    state: ServerStage
    tools: int = 0
    """How many of its tools are offered."""
    reason: str = ""
    """Why it was started once more, or failed."""


class ManagedServer:
    """Start it with `start`, end it with `close`."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        around: McpEnvironment,
        on_tools: Callable[["ManagedServer", list[Tool]], int],
    ) -> None:
        self.name = name
        self.server = server
        self.log = ServerLog(around.logs / f"mcp-{_as_file_name(name)}.log")
        self._around = around
        self._on_tools = on_tools
        self._conversation: Conversation | None = None
        self._signals = Signals()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._listed: list[Tool] = []
        self._is_over = False
        self.failure = ""
        """Why it runs no more; empty while it starts or runs."""

    def start(self) -> None:
        """Begin in the background."""
        self._tell("starting")
        self._task = asyncio.create_task(self._lives(), name=f"mcp {self.name}")

    @property
    def is_settled(self) -> bool:
        """Whether its tools are known, or never will be."""
        return self._conversation is not None or self._is_over

    async def settled(self) -> None:
        """Wait until its tools are known, or never will be."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_settled)

    @property
    def absence(self) -> str:
        """What the model is told when it asks for what ran once; empty while it starts or runs."""
        return f"The MCP server {self.name!r} does not run: {self.failure}. Do without it." if self.failure else ""

    async def close(self) -> None:
        """End it and every process of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool by the server's own name for it.

        Raises:
            ServerFailed: the server does not run any more, went away meanwhile, or refused the call.
            TimeoutError: it took longer than its setting allows; the server was told to stop.
        """
        conversation = await self._usable()
        try:
            async with asyncio.timeout(self.server.timeout):
                return await _unless_lost(conversation.call(tool, arguments, progress), self._signals.lost)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ServerFailed(f"The MCP server {self.name!r} went away; nothing was sent. Try again.") from error
        except _Lost as error:
            raise ServerFailed(
                f"The MCP server {self.name!r} went away during the call. What the call did until then is not "
                "known: find out before you repeat it."
            ) from error
        except McpError as error:
            said = error.error.message[:_SAID_CHARS]
            raise ServerFailed(f"The MCP server {self.name!r} refused: {said}") from error
        except NoResult as error:
            raise ServerFailed(
                f"The MCP server {self.name!r} answered with what is no result of a call; what it did is not known."
            ) from error

    async def _usable(self) -> Conversation:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._is_over or (self._conversation is not None and not self._signals.lost.is_set())
            )
        if self._conversation is None:
            raise ServerFailed(self.absence)
        return self._conversation

    async def _lives(self) -> None:
        for life in range(1, _LIVES + 1):
            reason = await self._life()
            was_ready = self._conversation is not None
            await self._settle(None)
            if not was_ready or life == _LIVES:
                self.failure = reason
                self._is_over = True
                self._around.warn(f"MCP server {self.name!r}: {reason}. Its tools are not available.")
                self._on_tools(self, [])
                self._tell("failed", reason=reason)
                await self._settle(None)
                return
            self._around.warn(f"MCP server {self.name!r}: {reason}. It is started once more.")
            self._tell("restarting", reason=reason)

    async def _life(self) -> str:
        """Run it until it ends; returns why it did."""
        signals = self._signals = Signals()
        try:
            self.log.begin()
            async with AsyncExitStack() as open_now:
                conversation = await self._greeted(open_now, signals)
                while not signals.lost.is_set():
                    await _first_of(signals.lost, signals.changed)
                    if signals.changed.is_set() and not signals.lost.is_set():
                        signals.changed.clear()
                        await self._list_again(conversation)
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(signals.lost.wait(), _CALM_S)
        except Exception as error:  # noqa: BLE001 - the boundary to servers, which fail in every way there is
            _log.warning(
                "the MCP server %s failed", self.name, exc_info=not isinstance(error, ServerUnreachable | NoAnswer)
            )
            hint = way_out(error, self.name, self.server, self._around.sandbox, self.log)
            return f"{why(error, self.server, self.log)}{hint}"
        return "it ended by itself"

    async def _list_again(self, conversation: Conversation) -> None:
        """Follow a change of its tools; where it cannot tell them now, those that were known stay."""
        try:
            async with asyncio.timeout(_RELISTED_S):
                tools = await _unless_lost(conversation.tools(), self._signals.lost)
        except (TimeoutError, McpError, _Lost, ValueError):
            _log.warning("the MCP server %s did not list its tools anew", self.name, exc_info=True)
            return
        if tools != self._listed:
            self._take(tools)
            await self._settle(conversation)

    async def _greeted(self, open_now: AsyncExitStack, signals: Signals) -> Conversation:
        limit = self.server.startup_timeout
        try:
            async with asyncio.timeout(limit):
                conversation = await self._opened(open_now, signals)
                tools = await conversation.tools()
        except TimeoutError as error:
            raise NoAnswer(
                f"it did not answer within {limit:g} s (setting mcp_servers.{self.name}.startup_timeout)"
            ) from error
        self._take(tools)
        await self._settle(conversation)
        return conversation

    def _take(self, tools: list[Tool]) -> None:
        self._listed = tools
        if len(tools) > MOST_TOOLS:
            self._around.warn(
                f"MCP server {self.name!r} lists more than {MOST_TOOLS} tools; the others are left out. "
                f"The setting mcp_servers.{self.name}.tools names those that are wanted."
            )
        self._tell("running", self._on_tools(self, tools[:MOST_TOOLS]))

    def _tell(self, state: ServerStage, tools: int = 0, reason: str = "") -> None:
        self._around.heard(ServerState(self.name, state, tools, reason))

    async def _opened(self, open_now: AsyncExitStack, signals: Signals) -> Conversation:
        opening = opened_conversation(self.server, self._around.folder, self.log, signals, self._around.sandbox)
        return await open_now.enter_async_context(opening)

    async def _settle(self, conversation: Conversation | None) -> None:
        async with self._changed:
            self._conversation = conversation
            self._changed.notify_all()


def _as_file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


async def _unless_lost(call: Coroutine[Any, Any, T], lost: asyncio.Event) -> T:
    """What comes of a request; `_Lost` when the server goes away first, whatever the library makes of that."""
    running, gone = asyncio.ensure_future(call), asyncio.ensure_future(lost.wait())
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        # An answer may have been read just before the end.
        await asyncio.wait({running}, timeout=_LAST_WORDS_S)
        if not running.done():
            raise _Lost
        return running.result()
    except McpError as error:
        if not is_closed(error):
            raise
        raise _Lost from error
    finally:
        gone.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait({running})


class _Lost(Exception):
    """The server went away during a call."""


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
