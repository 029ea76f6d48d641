"""A program that speaks the protocol on its input and output: started, fed, read and ended with all its processes.

Nothing it writes can fill memory or disk, or keep anybody waiting.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.messages import message_of, refusal_of

__all__ = ["Launch", "Streams", "served"]

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
