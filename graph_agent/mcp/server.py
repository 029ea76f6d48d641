"""One server through its lives: started in the background, started once more after a crash, ended with us.

A call that was under way when the server went away is not made again: what it did until then nobody knows.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
from mcp import McpError
from mcp.shared.session import ProgressFnT
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool
from pydantic import ValidationError

from graph_agent.config.settings import McpServer
from graph_agent.mcp.conversation import Conversation, Signals, opened_conversation
from graph_agent.mcp.reaching import CannotReach
from tools.sandbox import Sandbox

__all__ = ["RunningServer", "ServerFailed", "Surroundings"]

_log = logging.getLogger(__name__)

_LIVES = 2
"""How often a server is started: it may crash once."""
_LAST_WORDS_S = 0.2
_SHOWN_CHARS = 200
_LOOKED_AT_BYTES = 64 * 1024


class ServerFailed(Exception):
    """A call could not be made, or was broken off with the server; the message is for the model."""


@dataclass(frozen=True)
class Surroundings:
    """Where servers live, and who hears of them."""

    folder: Path
    """They are started here; what they are told of as their root."""
    logs: Path
    """Folder that takes what they write on their standard error."""
    warn: Callable[[str], None]
    sandbox: Sandbox | None = None
    """What programs are started in."""


class RunningServer:
    """Start it with `start`, end it with `close`."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        around: Surroundings,
        on_tools: Callable[["RunningServer", list[Tool]], None],
    ) -> None:
        self.name = name
        self.server = server
        self._around = around
        self._on_tools = on_tools
        self._conversation: Conversation | None = None
        self._signals = Signals()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._is_over = False
        self.failure = ""
        """Why it runs no more; empty while it starts or runs."""

    def start(self) -> None:
        """Begin in the background."""
        self._task = asyncio.create_task(self._lives(), name=f"mcp {self.name}")

    @property
    def is_settled(self) -> bool:
        """Whether its tools are known, or never will be."""
        return self._conversation is not None or self._is_over

    async def settled(self) -> None:
        """Wait until its tools are known, or never will be."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_settled)

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
            raise ServerFailed(f"The MCP server {self.name!r} refused: {error.error.message}") from error
        except ValidationError as error:
            raise ServerFailed(
                f"The MCP server {self.name!r} answered with what is no result of a call; what it did is not known."
            ) from error

    async def _usable(self) -> Conversation:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._is_over or (self._conversation is not None and not self._signals.lost.is_set())
            )
        if self._conversation is None:
            raise ServerFailed(f"The MCP server {self.name!r} does not run: {self.failure}. Do without it.")
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
                await self._settle(None)
                return
            self._around.warn(f"MCP server {self.name!r}: {reason}. It is started once more.")

    async def _life(self) -> str:
        """Run it until it ends; returns why it did."""
        signals = self._signals = Signals()
        try:
            self._log_file().write_bytes(b"")
            async with AsyncExitStack() as open_now:
                conversation = await self._greeted(open_now, signals)
                while not signals.lost.is_set():
                    await _first_of(signals.lost, signals.changed)
                    if signals.changed.is_set() and not signals.lost.is_set():
                        signals.changed.clear()
                        self._on_tools(self, await conversation.tools())
        except Exception as error:  # noqa: BLE001 - the boundary to servers, which fail in every way there is
            _log.warning("the MCP server %s failed", self.name, exc_info=not isinstance(error, CannotReach))
            return f"{self._in_words(error)}{self._way_out()}"
        return "it ended by itself"

    async def _greeted(self, open_now: AsyncExitStack, signals: Signals) -> Conversation:
        limit = self.server.startup_timeout
        try:
            async with asyncio.timeout(limit):
                conversation = await open_now.enter_async_context(
                    opened_conversation(
                        self.server, self._around.folder, self._log_file(), signals, self._around.sandbox
                    )
                )
                tools = await conversation.tools()
        except TimeoutError as error:
            raise CannotReach(
                f"it did not answer within {limit:g} s (setting mcp_servers.{self.name}.startup_timeout)"
            ) from error
        self._on_tools(self, tools)
        await self._settle(conversation)
        return conversation

    async def _settle(self, conversation: Conversation | None) -> None:
        async with self._changed:
            self._conversation = conversation
            self._changed.notify_all()

    def _in_words(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        match error:
            case CannotReach():
                return str(error)
            case httpx.HTTPStatusError():
                return f"{self.server.url} answered {error.response.status_code}"
            case httpx.HTTPError():
                return f"{self.server.url} cannot be reached ({type(error).__name__})"
            case McpError() if not _is_closed(error):
                return f"it refused: {error.error.message}"
            case McpError() | anyio.BrokenResourceError() | anyio.ClosedResourceError() | ConnectionError():
                return f"it ended before it answered ({self._last_line()}all of it in {self._log_file()})"
        return f"{type(error).__name__}: {error}"

    def _way_out(self) -> str:
        """What to change where the sandbox may be why it failed."""
        walls = self._around.sandbox
        if walls is None or not walls.stands or not self.server.sandbox or self.server.command is None:
            return ""
        key = f"mcp_servers.{self.name}"
        closed = (
            "" if walls.terms.network or self.server.network else f"; {key}.network = true opens the network to it"
        )
        return f". It runs in the sandbox{closed}; {key}.sandbox = false does without"

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The end of what it wrote on its standard error in this life."""
        try:
            with self._log_file().open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _LOOKED_AT_BYTES, 0))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ()
        return tuple([line.strip()[:_SHOWN_CHARS] for line in lines if line.strip()][-count:])

    def _last_line(self) -> str:
        return "".join(f"its last line: {line}; " for line in self.last_lines(1))

    def _log_file(self) -> Path:
        safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in self.name)
        return self._around.logs / f"mcp-{safe}.log"


def _is_closed(error: McpError) -> bool:
    """Whether the library says so itself: servers have the same number for failures of their own."""
    return error.error.code == CONNECTION_CLOSED and error.error.message == "Connection closed"


async def _unless_lost(call: Coroutine[Any, Any, CallToolResult], lost: asyncio.Event) -> CallToolResult:
    """The call's result; `_Lost` when the server goes away first, whatever the library makes of that."""
    running, gone = asyncio.ensure_future(call), asyncio.ensure_future(lost.wait())
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        # An answer may have been read just before the end.
        await asyncio.wait({running}, timeout=_LAST_WORDS_S)
        if not running.done():
            raise _Lost
        return running.result()
    except McpError as error:
        if not _is_closed(error):
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
