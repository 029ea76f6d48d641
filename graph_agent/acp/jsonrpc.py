"""JSON-RPC 2.0 over lines of JSON: requests in both directions at once, and an error for whatever is not a request.

Nothing that arrives ends the process: a line that cannot be read is answered with an error, and the next one is
read.
"""

import asyncio
import json
import logging
import math
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

from graph_agent.errors import AgentError, UnknownId, UsageError

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "PARSE_ERROR",
    "Connection",
    "Handler",
    "LineWriter",
    "PeerError",
    "Reply",
    "RpcError",
    "read_lines",
    "to_rpc_error",
]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
NOT_FOUND = -32002
"""The protocol's own code for something that does not exist."""

_MAX_LINE_BYTES = 64 * 1024 * 1024
"""Room for several images of the largest size that is accepted."""
_READ_BYTES = 256 * 1024
_MAX_SHOWN = 80

RequestId = str | int | float | None
_log = logging.getLogger(__name__)


class RpcError(Exception):
    """A request that is answered with an error; the message is for the person at the other end."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class PeerError(Exception):
    """The peer answered a request with an error, or the connection ended before it answered."""


class Reply(NamedTuple):
    """What a handler returns: the result, and what is to be done once that was sent."""

    result: Mapping[str, Any]
    then: Callable[[], object] | None = None


Handler = Callable[[str, Mapping[str, Any]], Awaitable[Reply]]
"""Takes the method and its parameters. Raises RpcError or AgentError for a request that cannot be served."""


def to_rpc_error(failure: AgentError) -> RpcError:
    """The error with which a failure is answered."""
    match failure:
        case UnknownId():
            code = NOT_FOUND
        case UsageError():
            code = INVALID_PARAMS
        case _:
            code = INTERNAL_ERROR
    return RpcError(code, str(failure))


class Connection:
    """Both ends of a conversation with one peer. Belongs to the event loop that it is used in."""

    def __init__(self, send: Callable[[bytes], object], handler: Handler) -> None:
        self._send = send
        self._handler = handler
        self._asked: dict[RequestId, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def receive(self, line: bytes) -> None:
        """Take in one line: answer it, begin to serve it, or hand it to the caller that waits for it."""
        if not line.strip():
            return
        try:
            message = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._refuse(None, PARSE_ERROR, f"This line is not JSON: {_shown(line)}")
            return
        if not isinstance(message, dict):
            kind = "a batch, which this protocol does not have" if isinstance(message, list) else "not an object"
            self._refuse(None, INVALID_REQUEST, f"A message must be one JSON object; this is {kind}.")
        elif "method" in message:
            self._receive_call(message)
        elif "id" in message and ("result" in message or "error" in message):
            self._receive_answer(message)
        else:
            self._refuse(_request_id(message), INVALID_REQUEST, "The message has neither a method nor a result.")

    def refuse_long_line(self) -> None:
        """Answer a line of which the rest was skipped."""
        limit = _MAX_LINE_BYTES // (1024 * 1024)
        self._refuse(None, INVALID_REQUEST, f"The message is longer than {limit} MB and was not read.")

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request; returns its result. Cancelling this notifies the peer that no answer is needed any more.

        Raises:
            PeerError: the peer answered with an error, or is gone.
        """
        if self._is_closed:
            raise PeerError("the connection has ended")
        self._last_id += 1
        number, answer = self._last_id, asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._write({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            if not self._is_closed:
                self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            self._asked.pop(number, None)

    async def close(self) -> None:
        """End what is being served; callers that wait for the peer get a `PeerError`."""
        self._is_closed = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(PeerError("the connection has ended"))
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _receive_call(self, message: Mapping[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        is_request = "id" in message
        number = _request_id(message)
        if not isinstance(method, str) or (is_request and number is None and message["id"] is not None):
            self._refuse(number, INVALID_REQUEST, "The method must be a string, and the id a string or a number.")
        elif params is not None and not isinstance(params, dict):
            if is_request:
                self._refuse(number, INVALID_PARAMS, f"The parameters of {method} must be an object.")
        else:
            task = asyncio.get_running_loop().create_task(self._serve(method, params or {}, number, is_request))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, method: str, params: Mapping[str, Any], number: RequestId, is_request: bool) -> None:
        try:
            reply = await self._handler(method, params)
        except RpcError as refusal:
            error = refusal
        except AgentError as failure:
            error = to_rpc_error(failure)
        except Exception as bug:  # noqa: BLE001 - the boundary to the peer: the process must outlive any one request
            _log.exception("%s failed", method)
            text = f"Unexpected {type(bug).__name__}. This is a bug in graph-agent; its log has the details."
            error = RpcError(INTERNAL_ERROR, text)
        else:
            if is_request:
                self._write({"id": number, "result": reply.result})
            if reply.then is not None:
                reply.then()
            return
        if is_request:
            self._refuse(number, error.code, str(error))
        else:
            _log.warning("notification %s: %s", method, error)

    def _receive_answer(self, message: Mapping[str, Any]) -> None:
        number = _request_id(message)
        answer = self._asked.get(number)
        if answer is None or answer.done():
            _log.info("an answer to request %r, which nobody waits for", number)
        elif message.get("error") is not None:
            error = message["error"]
            answer.set_exception(PeerError(str(error.get("message") if isinstance(error, dict) else error)))
        else:
            answer.set_result(message.get("result"))

    def _refuse(self, number: RequestId, code: int, text: str) -> None:
        self._write({"id": number, "error": {"code": code, "message": text}})

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._is_closed:
            return
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"), default=str)
        # Strict parsers refuse lone surrogates, which a model or a file name may hold.
        self._send(text.encode("utf-8", "replace") + b"\n")


def _request_id(message: Mapping[str, Any]) -> RequestId:
    number = message.get("id")
    is_id = isinstance(number, str | int | float) and not isinstance(number, bool)
    # A number too large for a float is read as infinite, which JSON cannot express.
    return number if is_id and number not in (math.inf, -math.inf) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return ascii(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


class LineWriter:
    """Writes on a thread of its own, so that a peer that does not read keeps nothing waiting.

    Args:
        write: writes all of a text; a peer that is gone is an OSError.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="acp writer", daemon=True)
        self._thread.start()

    def send(self, line: bytes) -> None:
        """Write a line soon, in the order of the calls."""
        self._lines.put(line)

    def close(self, seconds: float) -> None:
        """Write what is left, at most this long."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._write(line.decode())
            except OSError as error:
                _log.info("the peer does not read any more: %s", error)
                return


_LineKind = Literal["line", "long"]


async def read_lines(descriptor: int) -> AsyncIterator[tuple[_LineKind, bytes]]:
    """The lines of a file, pipe or terminal, until it ends; of a line that is too long, only its kind."""
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    read = partial(_read_all, descriptor, asyncio.get_running_loop(), arrived)
    threading.Thread(target=read, name="acp reader", daemon=True).start()
    pieces: list[bytes] = []
    size, is_skipping = 0, False
    while data := await arrived.get():
        *complete, unfinished = data.split(b"\n")
        for part in complete:
            if is_skipping or size + len(part) > _MAX_LINE_BYTES:
                yield "long", b""
            else:
                yield "line", b"".join((*pieces, part))
            pieces, size, is_skipping = [], 0, False
        pieces.append(unfinished)
        size += len(unfinished)
        if size > _MAX_LINE_BYTES:
            pieces, size, is_skipping = [], 0, True
    if size:
        yield "line", b"".join(pieces)


def _read_all(descriptor: int, loop: asyncio.AbstractEventLoop, arrived: "asyncio.Queue[bytes]") -> None:
    # The loop may be closed by the time more arrives.
    with suppress(RuntimeError):
        while True:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except OSError:
                data = b""
            loop.call_soon_threadsafe(arrived.put_nowait, data)
            if not data:
                return
