"""A small real web site on this machine, for tools that fetch: fixed answers by path, and what was asked of it."""

import contextlib
import gzip
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self

__all__ = ["Answer", "WebSite", "packed"]


class Answer(NamedTuple):
    """What a path gives."""

    body: bytes = b""
    content_type: str = "text/plain"
    status: int = 200
    headers: Mapping[str, str] = {}
    delay_s: float = 0.0


def packed(body: bytes) -> Answer:
    """The body as gzip."""
    return Answer(gzip.compress(body), "text/plain", headers={"Content-Encoding": "gzip"})


class WebSite:
    """Serves until it is left. `asked` are the paths with the Host header of each request."""

    def __init__(self, answers: Mapping[str, Answer], post: Mapping[str, Answer] | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.posted: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self._answers = {"GET": answers, "POST": post or {}}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """The address of a path."""
        return f"http://{host}:{self.port}{path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class names it so
                """Requests are kept, not printed."""

            def do_POST(self) -> None:
                site.posted.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                self.do_GET()

            def do_GET(self) -> None:
                site.asked.append((self.path, self.headers.get("Host", "")))
                site.headers.append(dict(self.headers))
                answer = site._answers[self.command].get(self.path, Answer(b"nothing here", status=404))
                site.closing.wait(answer.delay_s)
                # A client that has seen enough goes away in the middle of a body.
                with contextlib.suppress(ConnectionError):
                    self.send_response(answer.status)
                    if answer.content_type:
                        self.send_header("Content-Type", answer.content_type)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(answer.body)))
                    self.end_headers()
                    self.wfile.write(answer.body)

        return Handler
