"""One session with a server: opened, its tools listed, called; it ends when the server goes away.

Lists of tools and results of calls are read entry by entry, so that an invalid entry does not lose all the others.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
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
from graph_agent.mcp.errors import ServerNotReady
from graph_agent.mcp.resources import RESOURCE_TOOLS, call_resource_tool, has_resources
from graph_agent.mcp.transport import ServerLog, Streams, open_streams, parse_message
from tools.sandbox import Sandbox

__all__ = [
    "MAX_TOOLS",
    "InvalidResult",
    "McpSession",
    "RawResult",
    "Signals",
    "open_mcp_session",
    "parse_call_result",
    "parse_tools",
]

_log = logging.getLogger(__name__)

MAX_TOOLS = 1000
_MAX_PAGES = 200
"""A server that never stops paging is cut off here."""
_CANCEL_S = 1.0

RawResult = RootModel[dict[str, Any]]
"""A result as it was sent."""
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


class InvalidResult(ValueError):
    """The answer to a call is not a call result."""


class Signals:
    """Events that a server causes on its own."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.sent_invalid = asyncio.Event()
        """Something that is no message came."""
        self.tools_changed = asyncio.Event()


class McpSession(ClientSession):
    """The session of the SDK; it also tells the server when a call is cancelled."""

    _resource_tools: frozenset[str] = frozenset()
    """The tools of `resources.py` that were listed."""

    async def tools(self) -> list[Tool]:
        """All tools of the server, over all pages, at most `MAX_TOOLS` + 1, and those for its resources."""
        found = await self._own_tools()
        names = {tool.name for tool in found}
        capabilities = self.get_server_capabilities()
        offers = capabilities is not None and capabilities.resources is not None
        added = [tool for tool in RESOURCE_TOOLS if tool.name not in names] if offers else []
        if added and not await has_resources(self._ask):
            added = []
        self._resource_tools = frozenset(tool.name for tool in added)
        return [*found, *added]

    async def _ask(self, request: ClientRequest) -> Mapping[str, Any]:
        return (await self.send_request(request, RawResult)).root

    async def _own_tools(self) -> list[Tool]:
        found: list[Tool] = []
        cursor: str | None = None
        try:
            for _ in range(_MAX_PAGES):
                params = PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self._ask(ClientRequest(ListToolsRequest(params=params)))
                found += parse_tools(page, MAX_TOOLS + 1 - len(found))
                cursor = page.get("nextCursor")
                if not isinstance(cursor, str) or not cursor or len(found) > MAX_TOOLS:
                    break
        except McpError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
        return found

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Call a tool by the server's own name for it; if cancelled, tell the server.

        Raises:
            InvalidResult: the answer is not a call result.
        """
        request_id = self._request_id
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            if tool in self._resource_tools:
                return parse_call_result(await call_resource_tool(tool, arguments, self._ask))
            answer = await self.send_request(ClientRequest(request), RawResult, progress_callback=progress)
            return parse_call_result(answer.root)
        except asyncio.CancelledError:
            await asyncio.shield(self._notify_cancelled(request_id))
            raise

    async def _notify_cancelled(self, request_id: int) -> None:
        params = CancelledNotificationParams(requestId=request_id, reason="cancelled by the client")
        notification = ClientNotification(CancelledNotification(params=params))
        # The server may be the reason for the cancellation: it gets a moment to take the notification, no more.
        with anyio.move_on_after(_CANCEL_S), suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self.send_notification(notification)


@asynccontextmanager
async def open_mcp_session(
    server: McpServer, folder: Path, log: ServerLog, signals: Signals, sandbox: Sandbox | None = None
) -> AsyncIterator[McpSession]:
    """An initialised session.

    Raises:
        ServerUnreachable: the server cannot be started.
        ServerNotReady: it does not speak the protocol.
    """

    async def on_message(message: object) -> None:
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            signals.tools_changed.set()

    async def roots(context: RequestContext[ClientSession, Any]) -> ListRootsResult | ErrorData:  # noqa: ARG001 - the SDK's shape
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    async with (
        open_streams(server, folder, log, sandbox) as streams,
        _monitored(streams, signals, log) as (read, write),
        McpSession(
            read,
            write,
            list_roots_callback=roots,
            message_handler=on_message,
            client_info=Implementation(name="graph-agent", version="1"),
        ) as session,
    ):
        await _initialize(session.initialize(), signals, is_http=server.url is not None)
        yield session


async def _initialize(initialization: Coroutine[Any, Any, object], signals: Signals, *, is_http: bool) -> None:
    """Wait for the initialisation; an address that sends anything else will not answer any more.

    Raises:
        ServerNotReady: it will not come.
    """
    running = asyncio.ensure_future(initialization)
    invalid = asyncio.ensure_future(signals.sent_invalid.wait())
    try:
        await asyncio.wait({running, invalid} if is_http else {running}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise ServerNotReady("no MCP server at this address, which often ends in /mcp")
        running.result()
    finally:
        for task in (running, invalid):
            task.cancel()
        await asyncio.wait({running, invalid})


@asynccontextmanager
async def _monitored(streams: Streams, signals: Signals, log: ServerLog) -> AsyncIterator[Streams]:
    """The same streams; `signals.lost` is set when the server's end closes."""
    source, write = streams
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def forward() -> None:
        """Forward the messages; what the library could not parse is parsed again, with more tolerance."""
        try:
            async with sink:
                async for message in source:
                    if not isinstance(message, Exception):
                        await sink.send(message)
                        continue
                    line = message.errors()[0]["input"] if isinstance(message, ValidationError) else None
                    parsed = parse_message(line) if isinstance(line, str) else None
                    if parsed is not None:
                        await sink.send(parsed)
                    else:
                        log.note_invalid_output(
                            repr(line) if isinstance(message, ValidationError) else str(message)
                        )
                        signals.sent_invalid.set()
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
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


def parse_tools(page: Mapping[str, Any], limit: int) -> list[Tool]:
    """The tools of one page, from at most `limit` entries; entries without a name are left out."""
    entries = page.get("tools")
    tools: list[Tool] = []
    for entry in entries[:limit] if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        name, title, description = entry.get("name"), entry.get("title"), entry.get("description")
        schema, annotations = entry.get("inputSchema"), None
        if not isinstance(name, str) or not name:
            _log.warning("a tool without a name was left out")
            continue
        # Unreadable hints of the server count as none, which is the cautious reading.
        with suppress(ValidationError):
            if isinstance(given := entry.get("annotations"), dict):
                annotations = ToolAnnotations.model_validate(given)
        tool = Tool(
            name=name,
            title=title if isinstance(title, str) else None,
            description=description if isinstance(description, str) else None,
            inputSchema=schema if isinstance(schema, dict) else {},
            annotations=annotations,
        )
        tools.append(tool)
    return tools


def parse_call_result(answer: Mapping[str, Any]) -> CallToolResult:
    """The result of a call; content of an unknown kind becomes its JSON.

    Raises:
        InvalidResult: it is none.
    """
    content, structured = answer.get("content"), answer.get("structuredContent")
    if isinstance(content, dict | str):
        content = [content]
    if not isinstance(content, list) and not isinstance(structured, dict):
        raise InvalidResult("it has neither content nor structured content")
    return CallToolResult(
        content=[_parse_block(block) for block in content] if isinstance(content, list) else [],
        structuredContent=structured if isinstance(structured, dict) else None,
        isError=answer.get("isError") is True,
    )


def _parse_block(given: Any) -> ContentBlock:
    try:
        return _BLOCK.validate_python(given)
    except ValidationError:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return TextContent(type="text", text=text)
