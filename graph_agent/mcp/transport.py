"""The two ways to a server: a program that is started, or an address that is reached. Speaks no protocol itself.

A server at an address, in the library's way of speaking to one; and where that stays silent, the end of a call.

The library says nothing of a request whose answer breaks off, is no message, or is another's: its caller would wait
until a time limit.

A program that speaks the protocol on its input and output: started, fed, read and ended with all its processes.

Nothing it writes can fill memory or disk, or keep anybody waiting.

A line of a server as a message of the protocol, read as far as it can be.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

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
from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.settings import ServerUnreachable, server_environment, server_headers, server_program
from tools.paths import find_program
from tools.sandbox import Sandbox, SandboxLaunch, SandboxUnavailable
from tools.sandbox.mounts import path_exists

__all__ = ["Launch", "Streams", "message_of", "opened", "reached", "refusal_of", "served"]

_Kind = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
_MAY_BE_HALF = ("\\ud", "\\uD")
"""How an escaped half of a surrogate pair begins; in the bytes of a server there is no other."""
_ANSWERED = re.compile(rb'\s*\{[^{}]*?"id"\s*:\s*(\d{1,15})\s*,[^{}]*?"(?:result|error)"\s*:')
"""The beginning of an answer, and which request it answers."""
_ASIDE = -32_000
"""The protocol's code for what a side makes up by itself."""


def message_of(line: str) -> SessionMessage | None:
    """The message; None where the line holds none. Half a surrogate pair in it, as cut texts have, is replaced."""
    try:
        if not any(half in line for half in _MAY_BE_HALF):
            return SessionMessage(_read_messages(json.loads(line)))
        text = json.dumps(json.loads(line), ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(_read_messages(json.loads(whole)))
    except (ValueError, RecursionError):
        return None


def _read_messages(message: Any) -> JSONRPCMessage:
    """Read as what its keys say: to let the library try each kind takes seconds for a long list of tools."""
    if not isinstance(message, dict):
        raise ValueError("a message is an object")  # noqa: TRY004 - of a line, not of a caller
    if "method" in message:
        kind: type[_Kind] = JSONRPCRequest if message.get("id") is not None else JSONRPCNotification
    else:
        kind = JSONRPCError if isinstance(message.get("error"), dict) else JSONRPCResponse
    return JSONRPCMessage(kind.model_validate(message))


def refusal_of(beginning: bytes, why: str) -> SessionMessage | None:
    """An error in the place of an answer that is passed over, so that nobody waits; None: it was no answer."""
    answered = _ANSWERED.match(beginning)
    if answered is None:
        return None
    error = ErrorData(code=_ASIDE, message=why)
    return SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=int(answered[1]), error=error)))


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_LONGEST_LINE = 32 * 1024 * 1024
_BEGINNING = 256
_TOO_LONG = "its answer has more than 32 MB and was passed over; what the call did stands. Ask for less at once."
_CHUNK = 64 * 1024
_LAST_WORDS_S = 0.2
_GRACE_S = 2.0
"""What a server gets to end after its input was closed, and again after it was told to."""


@dataclass(frozen=True)
class Launch:
    """How the program is started."""

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


@asynccontextmanager
async def served(launch: Launch, log: ServerLog) -> AsyncIterator[Streams]:
    """The message streams of the program; when the block is left, it has ended.

    Raises:
        OSError: it cannot be started.
    """
    sink, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, source = anyio.create_memory_object_stream[SessionMessage](0)
    async with AsyncExitStack() as left:
        for end in (sink, read, write, source):
            left.push_async_callback(end.aclose)
        output, its_output = await _piped(left)
        side, its_side = await _piped(left)
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.words,
                env=dict(launch.environment),
                cwd=launch.folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=its_output,
                stderr=its_side,
                start_new_session=True,
            )
        finally:
            os.close(its_output)
            os.close(its_side)
        has_spoken = asyncio.Event()
        reading = asyncio.create_task(_read(output, sink, log, has_spoken))
        tasks = [
            reading,
            asyncio.create_task(_kept(side, log)),
            asyncio.create_task(_silenced(process, reading)),
            asyncio.create_task(_fed(source, process)),
        ]
        left.push_async_callback(_ended, process, tasks, has_spoken)
        yield read, write


async def _piped(left: AsyncExitStack) -> tuple[asyncio.StreamReader, int]:
    """What reads a new pipe, closed with the rest, and the end that is written to."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    reader = asyncio.StreamReader(limit=_CHUNK)
    pipe = os.fdopen(reading, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    left.callback(transport.close)
    return reader, writing


async def _kept(side: asyncio.StreamReader, log: ServerLog) -> None:
    while data := await side.read(_CHUNK):
        log.write(data)
        await asyncio.sleep(0)


async def _read(
    output: asyncio.StreamReader,
    sink: MemoryObjectSendStream[SessionMessage | Exception],
    log: ServerLog,
    has_spoken: asyncio.Event,
) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with sink:
            async for line in _lines(output):
                if isinstance(line, _Overlong):
                    log.note_stray("a line of more than 32 MB")
                    if (refusal := refusal_of(line.beginning, _TOO_LONG)) is not None:
                        await sink.send(refusal)
                    continue
                text = line.decode("utf-8", "replace").strip()
                # A flood of other lines must not be read with the care that messages are.
                message = message_of(text) if text.startswith("{") else None
                if message is not None:
                    has_spoken.set()
                    await sink.send(message)
                elif text:
                    log.note_stray(text)


@dataclass(frozen=True)
class _Overlong:
    """A line that is passed over."""

    beginning: bytes


async def _lines(output: asyncio.StreamReader) -> AsyncIterator[bytes | _Overlong]:
    """Line by line; one that does not end is passed over, not gathered."""
    begun, is_cut = bytearray(), False
    while chunk := await output.read(_CHUNK):
        await asyncio.sleep(0)  # Others have their turn, however much there is to read.
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not is_cut:
                yield bytes(begun + end)
            begun, is_cut = bytearray(), False
        begun += rest
        if len(begun) > _LONGEST_LINE:
            yield _Overlong(bytes(begun[:_BEGINNING]))
            is_cut = True
        if is_cut:
            begun.clear()


async def _fed(source: MemoryObjectReceiveStream[SessionMessage], process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None  # noqa: S101 - asked for when it was started
    with contextlib.suppress(anyio.ClosedResourceError, ConnectionError):
        async for sent in source:
            line = sent.message.model_dump_json(by_alias=True, exclude_none=True)
            process.stdin.write(line.encode("utf-8", "replace") + b"\n")
            await process.stdin.drain()


async def _silenced(process: asyncio.subprocess.Process, reading: asyncio.Task[None]) -> None:
    """Once the program has ended, nothing more is heard of it: what it left behind may hold its output open."""
    await process.wait()
    await asyncio.sleep(_LAST_WORDS_S)
    reading.cancel()


async def _ended(
    process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]], has_spoken: asyncio.Event
) -> None:
    """End it as the protocol wants: its input closes, then it is told, then it is killed; what it left goes too.

    One that never said a word of the protocol would not understand the first of these, and is told at once.
    """
    assert process.stdin is not None  # noqa: S101 - asked for when it was started
    with anyio.CancelScope(shield=True):
        tasks[-1].cancel()
        process.stdin.close()
        if not has_spoken.is_set():
            _signalled(process.pid, signal.SIGTERM)
        for step in (signal.SIGTERM, signal.SIGKILL):
            with anyio.move_on_after(_GRACE_S):
                await process.wait()
                break
            _signalled(process.pid, step)
        await process.wait()
        _signalled(process.pid, signal.SIGKILL)
        # Of a server that just crashed, the last words may still be in the pipe.
        await asyncio.wait(tasks, timeout=_LAST_WORDS_S)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _signalled(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


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
            raise ServerUnreachable("it does not know our session any more")
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


@asynccontextmanager
async def opened(
    server: McpServer, folder: Path, log: ServerLog, sandbox: Sandbox | None = None
) -> AsyncIterator[Streams]:
    """The message streams of a server; it is ended, with all its processes, when the block is left.

    Args:
        server: what to start or reach.
        folder: where it is started.
        log: takes its standard error: on the terminal it could pretend to be the agent.
        sandbox: what it is started in, unless its settings say otherwise.

    Raises:
        ServerUnreachable: the program does not exist, a variable it needs is not set, or there is no sandbox
            though one is required.
    """
    if server.url is not None:
        async with reached(server.url, server_headers(server)) as streams:
            yield streams
    else:
        with _confined(server, sandbox) as confined:
            async with served(_launch(server, folder, confined), log) as streams:
                yield streams


@contextmanager
def _confined(server: McpServer, sandbox: Sandbox | None) -> Iterator[SandboxLaunch | None]:
    if sandbox is None or not server.sandbox:
        yield None
        return
    rules = sandbox.rules
    own = replace(rules, network=rules.network or server.network, visible=(*rules.visible, *_named_paths(server)))
    try:
        with sandbox.with_rules(own).launch(
            " ".join((server.command or "", *server.args)), is_lasting=True
        ) as found:
            yield found
    except SandboxUnavailable as refusal:
        raise ServerUnreachable(f"it was not started, for want of a sandbox: {refusal}") from refusal


def _named_paths(server: McpServer) -> Iterator[Path]:
    """What its command line names in full; of a virtual environment all of it."""
    for word in (server.command or "", *server.args):
        path = Path(word)
        if path.is_absolute():
            yield path.parent.parent if path_exists(path.parent.parent / "pyvenv.cfg") else path


def _launch(server: McpServer, folder: Path, confined: SandboxLaunch | None) -> Launch:
    environment = server_environment(server)
    program = server_program(server, environment)
    walls = confined.prefix if confined else ()
    around = {**confined.environment, **{name: environment[name] for name in server.env}} if confined else {}
    return Launch((*_ended_with_us(), *walls, program, *server.args), {**environment, **around}, folder)


def _ended_with_us() -> list[str]:
    """A prefix by which the kernel ends the server when the agent is killed, where there is such a program."""
    setpriv = find_program("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
