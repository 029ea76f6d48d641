"""The message streams of a server: of a program that is started, or of an address that is reached over HTTP.

Nothing that a program writes can fill memory or disk, or keep anyone waiting. Over HTTP, a request gets an error
if its response is broken, no message, or an answer to another request; with the SDK alone its caller would wait for
the time limit.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import anyio
import httpx
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import RequestContext, StreamableHTTPTransport
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from graph_agent.config.settings import McpServer
from graph_agent.mcp.oauth import stored_login, token_file
from graph_agent.mcp.settings import ServerUnreachable, server_environment, server_headers, server_program
from tools.programs import end_with_agent, trusted_path
from tools.proxies import ProxyUnusable, proxy_for
from tools.sandbox import Sandbox, SandboxLaunch, SandboxUnavailable
from tools.sandbox.protected_paths import path_exists

__all__ = [
    "Launch",
    "ServerLog",
    "Streams",
    "error_response",
    "open_http",
    "open_program",
    "open_streams",
    "parse_message",
]

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
_Sink = MemoryObjectSendStream[SessionMessage | Exception]

_MAX_LINE = 32 * 1024 * 1024
_LINE_START = 256
_TOO_LARGE = "its answer has more than 32 MB and was dropped; the call itself took effect. Request less at once."
_CHUNK = 64 * 1024
_LAST_OUTPUT_S = 0.2
_GRACE_S = 2.0
"""How long a server may take to end after its input was closed, and again after SIGTERM."""
_CONNECT_S = 30.0
_READ_S = 300.0
"""Longest silence on an open stream; the time limit of a call is set elsewhere."""
_LOG_BYTES = 1024 * 1024
_TAIL_BYTES = 64 * 1024
_LOG_LINE = 200


class ServerLog:
    """The log of one server, started again with each of its runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.invalid_output = ""
        """The beginning of the first thing it sent that is no message of the protocol."""
        self._size = 0

    def begin(self) -> None:
        """Drop the log of the previous run."""
        self.invalid_output = ""
        self._size = 0
        self.path.unlink(missing_ok=True)
        self.path.touch(mode=0o600)

    def write(self, data: bytes) -> None:
        """Append standard error; when the file gets too large, what is older is dropped."""
        if self._size + len(data) > _LOG_BYTES:
            self.path.write_bytes(b"[earlier output was dropped: the log was too large]\n")
            self._size = 0
        with self.path.open("ab") as file:
            file.write(data)
        self._size += len(data)

    def note_invalid_output(self, text: str) -> None:
        """Remember the first line, or error, that came instead of a message."""
        self.invalid_output = self.invalid_output or text.strip()[:_LOG_LINE]

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The end of its standard error."""
        try:
            with self.path.open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ()
        return tuple([line.strip()[:_LOG_LINE] for line in lines if line.strip()][-count:])


@asynccontextmanager
async def open_streams(
    server: McpServer, folder: Path, log: ServerLog, sandbox: Sandbox | None = None
) -> AsyncIterator[Streams]:
    """The message streams of a server, which is ended with all its processes when the block is left.

    Args:
        server: what to start or reach.
        folder: its working directory.
        log: takes its standard error, which on the terminal could pretend to be the agent.
        sandbox: what it runs in, unless its settings say otherwise.

    Raises:
        ServerUnreachable: the program does not exist, a variable is not set, or a required sandbox is unavailable.
    """
    if server.url is not None:
        headers = server_headers(server)
        has_own = any(name.lower() == "authorization" for name in headers)
        login = None if has_own else stored_login(token_file(os.environ), server.url)
        async with open_http(server.url, headers, login) as streams:
            yield streams
        return
    with _sandboxed(server, sandbox) as sandboxed:
        async with open_program(_launch(server, folder, sandboxed), log) as streams:
            yield streams


@dataclass(frozen=True)
class Launch:
    """How a program is started."""

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    descriptors: Sequence[int] = ()
    """What the words read."""


@asynccontextmanager
async def open_program(launch: Launch, log: ServerLog) -> AsyncIterator[Streams]:
    """The message streams of a program, which has ended when the block is left.

    Raises:
        OSError: it cannot be started.
    """
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, source = anyio.create_memory_object_stream[SessionMessage](0)
    async with AsyncExitStack() as stack:
        for end in (sink, read, write, source):
            stack.push_async_callback(end.aclose)
        stdout, stdout_end = await _open_pipe(stack)
        stderr, stderr_end = await _open_pipe(stack)
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.words,
                env=dict(launch.environment),
                cwd=launch.folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=stdout_end,
                stderr=stderr_end,
                start_new_session=True,
                pass_fds=launch.descriptors,
            )
        finally:
            os.close(stdout_end)
            os.close(stderr_end)
        has_spoken = asyncio.Event()
        reader = asyncio.create_task(_read_messages(stdout, sink, log, has_spoken))
        tasks = [
            reader,
            asyncio.create_task(_log_stderr(stderr, log)),
            asyncio.create_task(_stop_reading_after_exit(process, reader)),
            asyncio.create_task(_write_messages(source, process)),
        ]
        stack.push_async_callback(_end_process, process, tasks, has_spoken)
        yield read, write


async def _open_pipe(stack: AsyncExitStack) -> tuple[asyncio.StreamReader, int]:
    """A reader for a new pipe, closed with the stack, and the end that is written to."""
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader(limit=_CHUNK)
    pipe = os.fdopen(read_end, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    stack.callback(transport.close)
    return reader, write_end


async def _log_stderr(stderr: asyncio.StreamReader, log: ServerLog) -> None:
    while data := await stderr.read(_CHUNK):
        log.write(data)
        await asyncio.sleep(0)


async def _read_messages(
    stdout: asyncio.StreamReader, sink: _Sink, log: ServerLog, has_spoken: asyncio.Event
) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with sink:
            async for line in _lines(stdout):
                if isinstance(line, _OverlongLine):
                    log.note_invalid_output("a line of more than 32 MB")
                    if (response := error_response(line.beginning, _TOO_LARGE)) is not None:
                        await sink.send(response)
                    continue
                text = line.decode("utf-8", "replace").strip()
                # A flood of other lines must not be parsed with the care that messages are.
                message = parse_message(text) if text.startswith("{") else None
                if message is not None:
                    has_spoken.set()
                    await sink.send(message)
                elif text:
                    log.note_invalid_output(text)


@dataclass(frozen=True)
class _OverlongLine:
    """A line that was dropped."""

    beginning: bytes


async def _lines(stdout: asyncio.StreamReader) -> AsyncIterator[bytes | _OverlongLine]:
    """Line by line; one that does not end is dropped instead of buffered."""
    begun, is_dropped = bytearray(), False
    while chunk := await stdout.read(_CHUNK):
        await asyncio.sleep(0)  # Other tasks get their turn, however much there is to read.
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not is_dropped:
                yield bytes(begun + end)
            begun, is_dropped = bytearray(), False
        begun += rest
        if len(begun) > _MAX_LINE:
            yield _OverlongLine(bytes(begun[:_LINE_START]))
            is_dropped = True
        if is_dropped:
            begun.clear()


async def _write_messages(
    source: MemoryObjectReceiveStream[SessionMessage], process: asyncio.subprocess.Process
) -> None:
    assert process.stdin is not None  # noqa: S101 - requested when it was started
    with contextlib.suppress(anyio.ClosedResourceError, ConnectionError):
        async for sent in source:
            line = sent.message.model_dump_json(by_alias=True, exclude_none=True)
            process.stdin.write(line.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()


async def _stop_reading_after_exit(process: asyncio.subprocess.Process, reader: asyncio.Task[None]) -> None:
    """After the exit nothing more is read, because processes it left behind may hold its output open."""
    await process.wait()
    await asyncio.sleep(_LAST_OUTPUT_S)
    reader.cancel()


async def _end_process(
    process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]], has_spoken: asyncio.Event
) -> None:
    """End it as the protocol demands: close its input, then SIGTERM, then SIGKILL; and kill what it left behind.

    One that never sent a message would not understand that its input is closed, and gets SIGTERM at once.
    """
    assert process.stdin is not None  # noqa: S101 - requested when it was started
    with anyio.CancelScope(shield=True):
        tasks[-1].cancel()
        process.stdin.close()
        if not has_spoken.is_set():
            _signal_group(process.pid, signal.SIGTERM)
        for step in (signal.SIGTERM, signal.SIGKILL):
            with anyio.move_on_after(_GRACE_S):
                await process.wait()
                break
            _signal_group(process.pid, step)
        await process.wait()
        _signal_group(process.pid, signal.SIGKILL)
        # The last output of a server that just crashed may still be in the pipe.
        await asyncio.wait(tasks, timeout=_LAST_OUTPUT_S)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


@contextmanager
def _sandboxed(server: McpServer, sandbox: Sandbox | None) -> Iterator[SandboxLaunch | None]:
    if sandbox is None or not server.sandbox:
        yield None
        return
    rules = sandbox.rules
    own = replace(rules, network=rules.network or server.network, visible=(*rules.visible, *_named_paths(server)))
    command = " ".join((server.command or "", *server.args))
    try:
        with sandbox.with_rules(own).launch(command, is_lasting=True) as launch:
            yield launch
    except SandboxUnavailable as error:
        raise ServerUnreachable(f"it was not started because the sandbox is unavailable: {error}") from error


def _named_paths(server: McpServer) -> Iterator[Path]:
    """The absolute paths on its command line; of a virtual environment the whole folder."""
    for word in (server.command or "", *server.args):
        path = Path(word)
        if path.is_absolute():
            yield path.parent.parent if path_exists(path.parent.parent / "pyvenv.cfg") else path


def _launch(server: McpServer, folder: Path, sandboxed: SandboxLaunch | None) -> Launch:
    environment = server_environment(server)
    words = [server_program(server, environment), *server.args]
    if sandboxed:
        words = [*sandboxed.prefix, *words]
        own = {name: environment[name] for name in server.env}
        environment = {**environment, **sandboxed.environment, **own}
    elif "PATH" not in server.env:
        # What it starts runs outside of the sandbox too.
        environment["PATH"] = trusted_path(environment["PATH"])
    return Launch(end_with_agent(words, "KILL"), environment, folder, sandboxed.descriptors if sandboxed else ())


@asynccontextmanager
async def open_http(url: str, headers: dict[str, str], auth: httpx.Auth | None = None) -> AsyncIterator[Streams]:
    """The message streams of the server; its session is ended when the block is left."""
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, source = anyio.create_memory_object_stream[SessionMessage](0)
    transport = _HttpTransport(url)
    try:
        proxy = proxy_for(url)
    except ProxyUnusable as error:
        raise ServerUnreachable(str(error)) from error
    timeout = httpx.Timeout(_CONNECT_S, read=_READ_S)
    # The environment was read already: the library would set up proxies that this address does not use.
    certificates = httpx.create_ssl_context()
    client = httpx.AsyncClient(
        headers=headers, auth=auth, timeout=timeout, proxy=proxy, trust_env=False, verify=certificates
    )
    async with client, sink, read, write, source, anyio.create_task_group() as group:

        def listen() -> None:
            group.start_soon(transport.handle_get_stream, client, sink)

        group.start_soon(transport.post_writer, client, source, sink, write, listen, group)
        try:
            yield read, write
        finally:
            await transport.terminate_session(client)
            group.cancel_scope.cancel()


class _HttpTransport(StreamableHTTPTransport):
    async def _handle_post_request(self, ctx: RequestContext) -> None:
        request = ctx.session_message.message.root
        if not isinstance(request, JSONRPCRequest) or request.method == "initialize":
            await super()._handle_post_request(ctx)
            return
        monitor = _ResponseMonitor(ctx.read_stream_writer, request.id)
        try:
            await super()._handle_post_request(replace(ctx, read_stream_writer=cast("_Sink", monitor)))
        except httpx.HTTPStatusError as error:
            status = f"it answered {error.response.status_code} {error.response.reason_phrase}".rstrip()
            data = ErrorData(code=INTERNAL_ERROR, message=status)
            await ctx.read_stream_writer.send(_error_message(request.id, data))
            return
        if monitor.is_session_lost:
            raise ServerUnreachable("it no longer knows this session")
        if not monitor.is_answered:
            data = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            await ctx.read_stream_writer.send(_error_message(request.id, data))


@dataclass
class _ResponseMonitor:
    """Forwards the messages of a response, and notes whether the request was answered."""

    sink: _Sink
    request: int | str
    is_answered: bool = field(default=False, init=False)
    is_session_lost: bool = field(default=False, init=False)
    """Whether the server does not know the session, usually because it was restarted."""

    async def send(self, item: SessionMessage | Exception) -> None:
        root = item.message.root if isinstance(item, SessionMessage) else None
        if isinstance(root, JSONRPCError) and root.error.message == "Session terminated":
            self.is_session_lost = True
            return
        self.is_answered |= isinstance(root, JSONRPCResponse | JSONRPCError) and root.id == self.request
        await self.sink.send(item)


_Kind = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
_ESCAPED_SURROGATES = ("\\ud", "\\uD")
"""How an escaped surrogate begins; the bytes of a server contain no other."""
_RESPONSE_START = re.compile(rb'\s*\{[^{}]*?"id"\s*:\s*(\d{1,15})\s*,[^{}]*?"(?:result|error)"\s*:')
"""The beginning of a response, with the id of its request."""
_LOCAL_ERROR = -32_000
"""The protocol's code for errors defined by an implementation."""


def parse_message(line: str) -> SessionMessage | None:
    """The message in a line; None where it has none. Single surrogates, as in cut texts, are replaced."""
    try:
        if any(surrogate in line for surrogate in _ESCAPED_SURROGATES):
            text = json.dumps(json.loads(line), ensure_ascii=False)
            line = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        message = json.loads(line)
        if not isinstance(message, dict):
            return None
        # The keys show the kind. If the SDK tries each kind, a long list of tools takes seconds.
        kind: type[_Kind] = JSONRPCError if isinstance(message.get("error"), dict) else JSONRPCResponse
        if "method" in message:
            kind = JSONRPCRequest if message.get("id") is not None else JSONRPCNotification
        return SessionMessage(JSONRPCMessage(kind.model_validate(message)))
    except (ValueError, RecursionError):
        return None


def error_response(beginning: bytes, message: str) -> SessionMessage | None:
    """An error in place of a dropped response, so that its caller does not wait; None: it was no response."""
    response = _RESPONSE_START.match(beginning)
    if response is None:
        return None
    return _error_message(int(response[1]), ErrorData(code=_LOCAL_ERROR, message=message))


def _error_message(request: int | str, error: ErrorData) -> SessionMessage:
    return SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error)))
