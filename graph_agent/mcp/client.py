"""One conversation with a server: opened, its tools listed, calls made. Ends when the server goes away.

Reads lists of tools and results of calls piece by piece: one odd entry must not cost all the others.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import ClientSession, McpError
from mcp.shared.context import RequestContext
from mcp.shared.message import SessionMessage
from mcp.shared.session import ProgressFnT
from mcp.types import (
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    ClientRequest,
    ContentBlock,
    ErrorData,
    Implementation,
    ListRootsResult,
    ListToolsRequest,
    PaginatedRequestParams,
    Root,
    ServerNotification,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolListChangedNotification,
)
from pydantic import FileUrl, RootModel, TypeAdapter, ValidationError

from graph_agent.config.settings import McpServer
from graph_agent.mcp.errors import NoAnswer
from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.transport import Streams, message_of, opened
from tools.sandbox import Sandbox

__all__ = [
    "MOST_TOOLS",
    "Conversation",
    "NoResult",
    "Raw",
    "Signals",
    "call_result",
    "listed_tools",
    "opened_conversation",
]

_log = logging.getLogger(__name__)

Raw = RootModel[dict[str, Any]]
"""An answer as it came."""
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


class NoResult(ValueError):
    """An answer to a call holds nothing that a call comes to."""


def listed_tools(page: Mapping[str, Any], most: int) -> list[Tool]:
    """The tools of one page, so many of its entries at most; what has no name is no tool."""
    entries = page.get("tools")
    listed = entries[:most] if isinstance(entries, list) else []
    found = [_tool(entry) for entry in listed if isinstance(entry, dict)]
    return [tool for tool in found if tool is not None]


def call_result(answer: Mapping[str, Any]) -> CallToolResult:
    """What a call came to; content of a kind that nobody knows stands as its JSON.

    Raises:
        NoResult: it is none.
    """
    content, structured = answer.get("content"), answer.get("structuredContent")
    if isinstance(content, dict | str):
        content = [content]
    if not isinstance(content, list) and not isinstance(structured, dict):
        raise NoResult("there is neither content nor structured content in it")
    blocks = [_block(block) for block in content] if isinstance(content, list) else []
    return CallToolResult(
        content=blocks,
        structuredContent=structured if isinstance(structured, dict) else None,
        isError=answer.get("isError") is True,
    )


def _tool(entry: Mapping[str, Any]) -> Tool | None:
    name, about, schema = entry.get("name"), entry.get("description"), entry.get("inputSchema")
    if not isinstance(name, str) or not name:
        _log.warning("a tool without a name was left out")
        return None
    return Tool(
        name=name,
        title=entry["title"] if isinstance(entry.get("title"), str) else None,
        description=about if isinstance(about, str) else None,
        inputSchema=schema if isinstance(schema, dict) else {},
        annotations=_annotations(entry.get("annotations")),
    )


def _annotations(given: Any) -> ToolAnnotations | None:
    """What it says of itself; where that cannot be read it says nothing, which is the careful reading."""
    try:
        return ToolAnnotations.model_validate(given) if isinstance(given, dict) else None
    except ValidationError:
        return None


def _block(given: Any) -> ContentBlock:
    try:
        return _BLOCK.validate_python(given)
    except ValidationError:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return TextContent(type="text", text=text)


MOST_TOOLS = 1000
_MOST_PAGES = 200
"""A server that goes on paging for ever is cut off here."""
_GOODBYE_S = 1.0


class Signals:
    """What a server does by itself: it goes away, changes its list of tools, or sends what is no message."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.strayed = asyncio.Event()
        """Where a message was due, something else came."""
        self.changed = asyncio.Event()


def _page_from(cursor: str | None) -> ListToolsRequest:
    return ListToolsRequest(params=PaginatedRequestParams(cursor=cursor) if cursor else None)


class Conversation(ClientSession):
    """The protocol's session, which also tells the server that a call is no longer wanted."""

    async def tools(self) -> list[Tool]:
        """Every tool the server lists, over all pages; none where it knows of no tools at all.

        Of more than `MOST_TOOLS` that many and one.
        """
        found: list[Tool] = []
        cursor: str | None = None
        try:
            for _ in range(_MOST_PAGES):
                page = (await self.send_request(ClientRequest(_page_from(cursor)), Raw)).root
                found += listed_tools(page, MOST_TOOLS + 1 - len(found))
                cursor = page.get("nextCursor")
                if not isinstance(cursor, str) or not cursor or len(found) > MOST_TOOLS:
                    break
        except McpError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
        return found

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool by the server's own name for it. Cancelled, it tells the server so.

        Raises:
            NoResult: the answer is no result of a call.
        """
        number = self._request_id
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            answer = await self.send_request(ClientRequest(request), Raw, progress_callback=progress)
            return call_result(answer.root)
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
    server: McpServer, folder: Path, log: ServerLog, signals: Signals, sandbox: Sandbox | None = None
) -> AsyncIterator[Conversation]:
    """A conversation past its greeting.

    Raises:
        ServerUnreachable: the server cannot be started.
    """

    async def notice(message: object) -> None:
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            signals.changed.set()

    async def roots(context: RequestContext[ClientSession, Any]) -> ListRootsResult | ErrorData:  # noqa: ARG001 - the SDK's shape
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    async with (
        opened(server, folder, log, sandbox) as streams,
        _watched(streams, signals, log) as (read, write),
        Conversation(
            read,
            write,
            list_roots_callback=roots,
            message_handler=notice,
            client_info=Implementation(name="graph-agent", version="1"),
        ) as conversation,
    ):
        await _unless_strayed(conversation.initialize(), signals, is_asked=server.url is not None)
        yield conversation


async def _unless_strayed(greeting: Coroutine[Any, Any, object], signals: Signals, *, is_asked: bool) -> None:
    """Wait for the greeting. From an address that was asked, what is no message stands where it should have come.

    Raises:
        NoAnswer: it will not come.
    """
    running, strayed = asyncio.ensure_future(greeting), asyncio.ensure_future(signals.strayed.wait())
    try:
        await asyncio.wait({running, strayed} if is_asked else {running}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise NoAnswer("nothing there speaks the protocol; the address often ends in /mcp")
        running.result()
    finally:
        for task in (running, strayed):
            task.cancel()
        await asyncio.wait({running, strayed})


@asynccontextmanager
async def _watched(streams: Streams, signals: Signals, log: ServerLog) -> AsyncIterator[Streams]:
    """The same streams; `signals.lost` is set when the server's end closes."""
    source, write = streams
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    def stray(text: str) -> None:
        log.note_stray(text)
        signals.strayed.set()

    async def forward() -> None:
        try:
            async with sink:
                await _pumped(source, sink.send, stray)
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


async def _pumped(
    source: MemoryObjectReceiveStream[SessionMessage | Exception],
    sink: Callable[[SessionMessage | Exception], Awaitable[None]],
    stray: Callable[[str], None],
) -> None:
    try:
        async for message in source:
            whole = _read_again(message) if isinstance(message, Exception) else message
            if whole is not None:
                await sink(whole)
            else:
                stray(_beginning(message))
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return


def _beginning(fault: object) -> str:
    """What came, as it came where the library kept it."""
    return repr(fault.errors()[0]["input"]) if isinstance(fault, ValidationError) else str(fault)


def _read_again(fault: Exception) -> SessionMessage | None:
    """The message of what the library could not read."""
    line = fault.errors()[0]["input"] if isinstance(fault, ValidationError) else None
    return message_of(line) if isinstance(line, str) else None
