"""A request that leaves while the program still loads; the model takes its answer over.

It goes out on a connection of its own, with nothing but the standard library. The connection may be opened before
there is a message. Until it is asked for, the answer waits in it.
"""

import asyncio
import json
import os
import re
import ssl
import string
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import certifi

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ConfigError
from graph_agent.model.openai.request_body import EncodedRequest, encode_request

__all__ = ["EarlyAnswer", "EarlyRequest", "trusted_certificates"]

_PORTS = {"http": 80, "https": 443}
_BLOCK = 64 * 1024
_MOST_BYTES = 1024 * 1024
"""Of an error, and of what comes before the first event."""
_STATUS = re.compile(r"HTTP/1\.\d (\d{3})\b")
_OK = 200
_REFUSALS = (400, 401, 404, 422, 429, 500, 502, 503)
"""Statuses that depend on the body or the key. Others may depend on headers, which differ from those of a turn."""
_HOP_BY_HOP = ("connection", "content-length", "keep-alive", "transfer-encoding")
_MOST_IDLE_S = 30.0
"""A connection that is idle for longer may have been dropped on the way, by a proxy or a router, without notice."""
_FINAL = 200
"""The lowest status of a final response; lower ones are interim responses."""

_FAULTS = (ConfigError, OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""The errors of sending and reading; a bad certificate is an `OSError`."""

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class EarlyAnswer(NamedTuple):
    """The answer of the endpoint, as a stream."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case, without hop-by-hop headers."""
    blocks: AsyncGenerator[bytes, None]
    """Closing them closes the connection."""


async def _no_record() -> None:
    """For a request that has no record."""


class EarlyRequest:
    """The first request of a thread, sent before its turn. The turn's own gets its answer, if both are equal."""

    def __init__(self, model: ModelSettings) -> None:
        self.request: EncodedRequest | None = None
        """None until it is sent."""
        self.clear_record: Callable[[], Coroutine[Any, Any, None]] = _no_record
        """Deletes the record of the request, once its answer is used or if it was never sent."""
        self._model = model
        self._has_left = False
        self._is_closed = False
        self._ahead: asyncio.Task[_Connection] | None = None
        self._connected_at = 0.0
        self._sending: asyncio.Task[_Connection] | None = None

    def connect_ahead(self) -> None:
        """Open the connection while a person types, where that takes round trips.

        Without encryption it takes one, and a simple local server may serve nobody else meanwhile.
        """
        if urlsplit(self._model.endpoint).scheme == "https":
            self._connected_at = time.monotonic()
            self._ahead = asyncio.create_task(_connect(self._model))

    def encode(self, body: bytes) -> EncodedRequest:
        """The request with this body."""
        return encode_request(self._model, body)

    def send_if_connected(self, request: EncodedRequest) -> None:
        """Send the turn's own request on the connection that was opened ahead, if it is unused and still open."""
        ahead = self._ahead
        if self.request is None and ahead is not None and ahead.done() and self._is_usable(ahead):
            self.send(request.body, _no_record)

    def send(self, body: bytes, clear_record: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send this body, once."""
        self.request, self.clear_record = self.encode(body), clear_record
        self._sending = asyncio.create_task(self._send(self.request))

    async def sent(self, seconds: float) -> None:
        """Wait until it was sent or has failed, at most for this time."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=seconds)

    async def answer(self) -> EarlyAnswer | None:
        """The answer, once; None if the request has to be sent again, because none came from the endpoint.

        Errors are not reported: they occur again when the turn sends the request.
        """
        if self._is_closed or self._sending is None:
            return None
        with suppress(*_FAULTS):
            reader, writer = await self._sending
            status, headers = await _read_head(reader)
            blocks = _answer_blocks(reader, writer, headers)
            if headers.get("content-encoding", "identity").lower() == "identity":
                kept = {name: value for name, value in headers.items() if name not in _HOP_BY_HOP}
                content_type = headers.get("content-type", "").lower()
                if status == _OK and content_type.startswith("text/event-stream"):
                    start = await _first_event(blocks)
                    self._is_closed = True
                    return EarlyAnswer(status, kept, _joined(start, blocks))
                if status in _REFUSALS and _is_error(body := await _whole(blocks)):
                    self._is_closed = True
                    return EarlyAnswer(status, kept, _joined(body, blocks))
        return None

    async def close(self) -> None:
        """Drop the request and its answer, unless the answer was handed out. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in filter(None, (self._ahead, self._sending)):
            task.cancel()
            with suppress(asyncio.CancelledError, *_FAULTS):
                _, writer = await task
                writer.close()
        if not self._has_left:
            await self.clear_record()

    async def _send(self, request: EncodedRequest) -> _Connection:
        reader, writer = await self._opened_ahead() or await _connect(self._model)
        self._has_left = True
        writer.write(_head(request) + request.body)
        return reader, writer

    async def _opened_ahead(self) -> _Connection | None:
        """The connection that was opened ahead, unless that failed, or it was closed or idle for too long."""
        if self._ahead is None:
            return None
        await asyncio.wait({self._ahead})
        if self._is_usable(self._ahead):
            return self._ahead.result()
        with suppress(asyncio.CancelledError, *_FAULTS):
            self._ahead.result()[1].close()
        return None

    def _is_usable(self, ahead: asyncio.Task[_Connection]) -> bool:
        is_recent = time.monotonic() - self._connected_at < _MOST_IDLE_S
        return is_recent and not ahead.cancelled() and not ahead.exception() and not ahead.result()[0].at_eof()


async def _connect(model: ModelSettings) -> _Connection:
    parts = urlsplit(model.endpoint)
    certificates = None
    if parts.scheme == "https":
        certificates = await asyncio.to_thread(trusted_certificates, model)
        certificates.set_alpn_protocols(["http/1.1"])
    async with asyncio.timeout(model.connect_timeout_s):
        return await asyncio.open_connection(parts.hostname, parts.port or _PORTS[parts.scheme], ssl=certificates)


def trusted_certificates(model: ModelSettings) -> ssl.SSLContext:
    """The certificates to trust at this endpoint: those of the settings or the environment, else well-known ones.

    Raises:
        ConfigError: they cannot be read.
    """
    if model.ca_file is not None:
        try:
            return ssl.create_default_context(cafile=model.ca_file.expanduser())
        except (OSError, ssl.SSLError) as error:
            path = str(model.ca_file)
            raise ConfigError(f"model.ca_file = {path!r} cannot be read as certificates: {error}.") from error
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        if file or folder:
            return ssl.create_default_context(cafile=file or None, capath=None if file else folder)
        return ssl.create_default_context(cafile=certifi.where())
    except OSError as error:
        raise ConfigError(
            f"The certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({file or folder or 'the system'}): "
            f"{error}. Name a PEM file, or unset the variable."
        ) from error


def _head(request: EncodedRequest) -> bytes:
    parts = urlsplit(request.url)
    headers = {
        "Host": parts.netloc,
        "User-Agent": "graph-agent",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Content-Length": str(len(request.body)),
        **request.headers,
    }
    lines = [f"POST {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    """Status and headers of the answer, their names in lower case."""
    while True:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = _STATUS.match(first)
        if found is None:
            raise ValueError(f"no answer begins with {first[:40]!r}")
        if int(found[1]) >= _FINAL:
            pairs = (line.partition(":") for line in lines)
            return int(found[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _answer_blocks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]
) -> AsyncGenerator[bytes, None]:
    """The body as it arrives."""
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while size := _size((await _line(reader)).partition(b";")[0].decode("latin-1"), 16):
                async for block in _exactly(reader, size):
                    yield block
                await _line(reader)
        elif "content-length" in headers:
            async for block in _exactly(reader, _size(headers["content-length"], 10)):
                yield block
        else:
            while block := await reader.read(_BLOCK):
                yield block
    finally:
        writer.close()


async def _first_event(blocks: AsyncGenerator[bytes, None]) -> bytes:
    """The stream up to where its first event has begun.

    Raises:
        EOFError: it ends before that.
        ValueError: it has not begun after a megabyte.
    """
    start = b""
    while b"data:" not in start:
        block = await anext(blocks, b"")
        if not block:
            raise EOFError("the answer holds no event")
        start += block
        if len(start) > _MOST_BYTES:
            raise ValueError("the answer begins with no event")
    return start


async def _whole(blocks: AsyncGenerator[bytes, None]) -> bytes:
    """The whole body.

    Raises:
        ValueError: it is too long for an error.
    """
    body = b""
    async for block in blocks:
        body += block
        if len(body) > _MOST_BYTES:
            raise ValueError("the answer is too long")
    return body


async def _joined(start: bytes, blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield start
        async for block in blocks:
            yield block
    finally:
        await blocks.aclose()


def _is_error(body: bytes) -> bool:
    """Whether this is an error as endpoints report it; a gateway on the way would send a page."""
    try:
        return isinstance(json.loads(body)["error"], dict)
    except (ValueError, RecursionError, KeyError, TypeError):
        return False


def _size(text: str, base: int) -> int:
    """A number of bytes. `int` alone would also take `-5` and `0x_5`."""
    if not all(one in string.hexdigits for one in text.strip()):
        raise ValueError(f"no number of bytes: {text[:40]!r}")
    return int(text, base)


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection was closed in the middle of the answer")
    return line


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        block = await reader.read(min(size, _BLOCK))
        if not block:
            raise EOFError("the connection was closed in the middle of the answer")
        size -= len(block)
        yield block
