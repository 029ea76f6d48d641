"""One conversation with a server: opened, its tools listed, calls made. Ends when the server goes away."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import ClientSession
from mcp.shared.context import RequestContext
from mcp.shared.message import SessionMessage
from mcp.shared.session import ProgressFnT
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    ClientRequest,
    ErrorData,
    Implementation,
    JSONRPCMessage,
    ListRootsResult,
    Root,
    ServerNotification,
    Tool,
    ToolListChangedNotification,
)
from pydantic import FileUrl, ValidationError

from graph_agent.config.settings import McpServer
from graph_agent.mcp.transport import Streams, opened
from tools.sandbox import Sandbox

__all__ = ["Conversation", "Signals", "opened_conversation"]

_MOST_TOOLS = 1000
"""A server that goes on paging for ever is cut off here."""
_GOODBYE_S = 1.0


class Signals:
    """What a server does by itself: it goes away, or it changes its list of tools."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.changed = asyncio.Event()


class Conversation(ClientSession):
    """The protocol's session, which also tells the server that a call is no longer wanted."""

    async def tools(self) -> list[Tool]:
        """Every tool the server lists, over all pages."""
        page = await self.list_tools()
        found = list(page.tools)
        while page.nextCursor and len(found) < _MOST_TOOLS:
            page = await self.list_tools(page.nextCursor)
            found += page.tools
        return found[:_MOST_TOOLS]

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool by the server's own name for it. Cancelled, it tells the server so."""
        number = self._request_id
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            return await self.send_request(ClientRequest(request), CallToolResult, progress_callback=progress)
        except asyncio.CancelledError:
            await asyncio.shield(self._withdraw(number))
            raise

    async def _withdraw(self, number: int) -> None:
        notice = CancelledNotification(
            params=CancelledNotificationParams(requestId=number, reason="no longer wanted")
        )
        # The server may be the reason for the cancellation: it gets a moment to take the notice, no more.
        with anyio.move_on_after(_GOODBYE_S):
            try:
                await self.send_notification(ClientNotification(notice))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def opened_conversation(
    server: McpServer, folder: Path, log: Path, signals: Signals, sandbox: Sandbox | None = None
) -> AsyncIterator[Conversation]:
    """A conversation past its greeting.

    Raises:
        CannotReach: the server cannot be started.
    """

    async def notice(message: object) -> None:
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            signals.changed.set()

    async def roots(context: RequestContext[ClientSession, Any]) -> ListRootsResult | ErrorData:  # noqa: ARG001 - the SDK's shape
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    async with (
        opened(server, folder, log, sandbox) as streams,
        _watched(streams, signals) as (read, write),
        Conversation(
            read,
            write,
            list_roots_callback=roots,
            message_handler=notice,
            client_info=Implementation(name="graph-agent", version="1"),
        ) as conversation,
    ):
        await conversation.initialize()
        yield conversation


@asynccontextmanager
async def _watched(streams: Streams, signals: Signals) -> AsyncIterator[Streams]:
    """The same streams; `signals.lost` is set when the server's end closes."""
    source, write = streams
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def forward() -> None:
        try:
            async with sink:
                await _pumped(source, sink.send)
        finally:
            signals.lost.set()

    async with anyio.create_task_group() as group:
        group.start_soon(forward)
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()
            await read.aclose()
            await source.aclose()
            await write.aclose()


def _read_again(fault: ValidationError) -> SessionMessage | Exception:
    """The message of a line that was refused for half a surrogate pair in it, as cut texts have; else the fault."""
    line = fault.errors()[0]["input"]
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(JSONRPCMessage.model_validate_json(whole))
    except (TypeError, ValueError, RecursionError):
        return fault


async def _pumped(
    source: MemoryObjectReceiveStream[SessionMessage | Exception],
    sink: Callable[[SessionMessage | Exception], Awaitable[None]],
) -> None:
    try:
        async for message in source:
            await sink(_read_again(message) if isinstance(message, ValidationError) else message)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return
