"""A real OpenAI-protocol server on 127.0.0.1 that answers from a script.

In a test:

    with FakeOpenAI([TC("c1", "ls", {"path": "."}), TXT("done")], strict=True) as server:
        ...  # base URL: server.base_url, ends in /v1; any key
    assert server.faults == []
    assert server.bodies[1]["messages"][-1]["content"] == ...

One entry answers one request to /chat/completions, streamed when the request has `stream: true`; after the list:
TXT("end"), or `after`. With `by_history` entry k answers every request whose history holds k assistant messages, so
that a request repeated after a kill gets the same answer. `strict` answers 400 on an invalid history, without using
up an entry. `refuse_stream` answers 500 on `stream: true`, likewise. GET /models lists `models`.

As a process of its own, for tests that kill the agent:

    python -m tests.fakes.openai_server --script FILE.json [--port N] [--strict] [--by-history] [--log FILE]
                                        [--model NAME]...

The first line printed is the base URL. The script is a list of strings (texts) and objects with fields of `Reply`,
e.g. `[{"calls": [["c1", "bash", {"command": "ls"}]]}, "done"]`. Each request body is appended to the log as one
line of JSON before it is answered. SIGTERM ends the process.
"""

import argparse
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fakes.openai_replies import CUT, DELAY, ERR, SSE, TC, TCS, TXT, Reply, reply_from_json
from tests.fakes.openai_strict import history_fault

__all__ = [
    "CUT",
    "DELAY",
    "ERR",
    "SSE",
    "TC",
    "TCS",
    "TXT",
    "FakeOpenAI",
    "Reply",
    "SeenRequest",
    "reply_from_json",
    "separate_server",
]


@dataclass(frozen=True)
class SeenRequest:
    """One request to /chat/completions."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    """Names in lower case."""
    at: float
    """Arrival, `time.monotonic()`."""


class FakeOpenAI:
    """The server; listens as soon as it is made, ends with `close` or the end of its `with` block."""

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        strict: bool = False,
        by_history: bool = False,
        refuse_stream: bool = False,
        after: Reply | None = None,
        most_chars: int | None = None,
        models: Sequence[str | Mapping[str, Any]] = ("fake-model",),
        port: int = 0,
        log: Path | None = None,
    ) -> None:
        self.replies = list(replies)
        self.strict = strict
        self.by_history = by_history
        self.refuse_stream = refuse_stream
        self.after = after or TXT("end")
        self._most_chars = most_chars
        self.too_long: list[int] = []
        """Places in `requests` of those with more text than it takes."""
        self.models = list(models)
        self.requests: list[SeenRequest] = []
        """Every request that reached /chat/completions, refused ones too."""
        self.faults: list[str] = []
        """What `strict` refused."""
        self._log = log
        self._used = 0
        self._lock = threading.Lock()
        self._listeners: list[tuple[_Listener, threading.Thread]] = []
        self.listen(port)

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is set to."""
        return f"http://127.0.0.1:{self._listeners[0][0].server_address[1]}/v1"

    def listen(self, port: int = 0) -> None:
        """Listen also on 127.0.0.1 of the network that the calling thread is in; by default at the same port."""
        if not port and self._listeners:
            port = int(self._listeners[0][0].server_address[1])
        http = _Listener(("127.0.0.1", port), self)
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        self._listeners.append((http, thread))
        thread.start()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The request bodies, in order of arrival."""
        return [request.body for request in self.requests]

    def answer(self, raw: bytes, headers: Mapping[str, str]) -> Reply:
        """Record a request and choose what answers it."""
        body = json.loads(raw.decode("utf-8", "replace"))
        with self._lock:
            self.requests.append(SeenRequest(body, headers, time.monotonic()))
            self._append_to_log(body)
            if self.refuse_stream and body.get("stream"):
                return ERR(500, {"error": {"code": 500, "message": "Cannot use tools with stream"}})
            if self.strict and (fault := history_fault(raw)):
                self.faults.append(fault)
                return ERR(400, f"invalid history: {fault}")
            text = sum(len(str(message.get("content") or "")) for message in body["messages"])
            if self._most_chars is not None and text > self._most_chars:
                self.too_long.append(len(self.requests) - 1)
                return ERR(
                    400, {"error": {"code": "context_length_exceeded", "message": "context length exceeded"}}
                )
            return self._next(body)

    def close(self) -> None:
        """Stop listening and end every connection."""
        for http, thread in self._listeners:
            http.shutdown()
            http.end_connections()
            http.server_close()
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, body: dict[str, Any]) -> Reply:
        if self.by_history:
            number = sum(message.get("role") == "assistant" for message in body["messages"])
        else:
            number, self._used = self._used, self._used + 1
        return self.replies[number] if number < len(self.replies) else self.after

    def _append_to_log(self, body: dict[str, Any]) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(body) + "\n")


class _Listener(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], fake: FakeOpenAI) -> None:
        self.fake = fake
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        super().__init__(address, _Conversation)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        self.closing.set()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, killed perhaps, is no news; anything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it so
        """Requests are kept, not printed."""

    def do_GET(self) -> None:
        if not self.path.rstrip("/").endswith("/models"):
            return self._send(404, {"error": {"message": f"no such path: {self.path}"}}, {})
        entries = [
            {"object": "model", **({"id": model} if isinstance(model, str) else model)}
            for model in self.server.fake.models
        ]
        return self._send(200, {"object": "list", "data": entries}, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/chat/completions"):
            return self._send(404, {"error": {"message": f"no such path: {self.path}"}}, {})
        reply = self.server.fake.answer(raw, {name.lower(): value for name, value in self.headers.items()})
        self.server.closing.wait(reply.delay_s)
        request = json.loads(raw.decode("utf-8", "replace"))
        if reply.status != 200:
            return self._send(reply.status, reply.body, reply.headers)
        if request.get("stream"):
            return self._stream(reply, request)
        return self._whole(reply, request)

    def _whole(self, reply: Reply, request: dict[str, Any]) -> None:
        self._send(200, reply.completion(request.get("model", "")), reply.headers, cut=reply.cut)

    def _stream(self, reply: Reply, request: dict[str, Any]) -> None:
        self._head(200, "text/event-stream", {**reply.headers, "Transfer-Encoding": "chunked"})
        with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
        events = reply.events(request.get("model", ""), with_usage=with_usage)
        for event in events[: reply.events_before_cut()] if reply.cut else events:
            self.server.closing.wait(reply.pace_s)
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.server.closing.wait(reply.linger_s)
        if reply.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, body: Any, headers: Mapping[str, str], *, cut: bool = False) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self._head(status, "application/json", {**headers, "Content-Length": str(len(data))})
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection = self.close_connection or cut

    def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextlib.contextmanager
def separate_server(script: Path, replies: Sequence[Any], *options: str) -> Iterator[str]:
    """A server in a process of its own that answers by the history of a request; yields its base URL.

    The replies are written to the script file, in the form that `reply_from_json` reads.
    """
    script.write_text(json.dumps(replies), encoding="utf-8")
    command = [sys.executable, "-m", __name__]
    command += ["--by-history", "--script", str(script), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main() -> None:
    """Serve a script file until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.openai_server")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--by-history", action="store_true")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--model", action="append")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with FakeOpenAI(
        [reply_from_json(entry) for entry in json.loads(options.script.read_text(encoding="utf-8"))],
        strict=options.strict,
        by_history=options.by_history,
        models=options.model or ("fake-model",),
        port=options.port,
        log=options.log,
    ) as server:
        sys.stdout.write(server.base_url + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
