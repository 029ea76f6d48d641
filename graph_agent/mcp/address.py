"""A server at an address, in the library's way of speaking to one; and where that stays silent, the end of a call.

The library says nothing of a request whose answer breaks off, is no message, or is another's: its caller would wait
until a time limit.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import anyio
import httpx
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.streamable_http import RequestContext, StreamableHTTPTransport
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)

from graph_agent.mcp.pipes import Streams
from graph_agent.mcp.reaching import CannotReach

__all__ = ["reached"]

_Sink = MemoryObjectSendStream[SessionMessage | Exception]

_CONNECT_S = 30.0
_SILENCE_S = 300.0
"""Longest silence on an open stream; how long a call may take is limited elsewhere."""


@asynccontextmanager
async def reached(url: str, headers: dict[str, str]) -> AsyncIterator[Streams]:
    """The message streams of the server; its session is ended when the block is left."""
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, source = anyio.create_memory_object_stream[SessionMessage](0)
    transport = _Transport(url)
    client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(_CONNECT_S, read=_SILENCE_S))
    async with client, sink, read, write, source, anyio.create_task_group() as group:

        def listen() -> None:
            group.start_soon(transport.handle_get_stream, client, sink)

        group.start_soon(transport.post_writer, client, source, sink, write, listen, group)
        try:
            yield read, write
        finally:
            await transport.terminate_session(client)
            group.cancel_scope.cancel()


class _Transport(StreamableHTTPTransport):
    async def _handle_post_request(self, ctx: RequestContext) -> None:
        asked = ctx.session_message.message.root
        if not isinstance(asked, JSONRPCRequest) or asked.method == "initialize":
            await super()._handle_post_request(ctx)
            return
        watched = _Watched(ctx.read_stream_writer, asked.id)
        try:
            await super()._handle_post_request(replace(ctx, read_stream_writer=cast("_Sink", watched)))
        except httpx.HTTPStatusError as error:
            status = f"it answered {error.response.status_code} {error.response.reason_phrase}".rstrip()
            await _refuse(ctx.read_stream_writer, asked.id, ErrorData(code=INTERNAL_ERROR, message=status))
            return
        if watched.is_over:
            raise CannotReach("it does not know our session any more")
        if not watched.is_answered:
            silence = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            await _refuse(ctx.read_stream_writer, asked.id, silence)


async def _refuse(sink: _Sink, request: int | str, error: ErrorData) -> None:
    await sink.send(SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))))


@dataclass
class _Watched:
    """The way of the answers to one request, as far as the library uses it."""

    sink: _Sink
    request: int | str
    is_answered: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)
    """Whether the server does not know the session any more: it was started anew, as a rule."""

    async def send(self, item: SessionMessage | Exception) -> None:
        root = item.message.root if isinstance(item, SessionMessage) else None
        if isinstance(root, JSONRPCError) and root.error.message == "Session terminated":
            self.is_over = True
            return
        self.is_answered |= isinstance(root, JSONRPCResponse | JSONRPCError) and root.id == self.request
        await self.sink.send(item)
