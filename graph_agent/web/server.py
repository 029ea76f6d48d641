"""The server: checks its options, prints the address, and serves the pages until it is ended."""

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from graph_agent.errors import AgentError, UsageError
from graph_agent.web.calls import call_list_regions, call_regions, call_routes
from graph_agent.web.guard import Access, Guard, is_loopback
from graph_agent.web.questions import inbox_regions, question_routes
from graph_agent.web.rendering import static_file, static_names
from graph_agent.web.runner import ThreadRunner
from graph_agent.web.site import Refused, Site
from graph_agent.web.state import state_regions, state_routes
from graph_agent.web.tasks import task_list_regions, task_regions, task_routes
from graph_agent.web.threads import thread_list_regions, thread_regions, thread_routes
from graph_agent.wording import escape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.types import ASGIApp

    from graph_agent.web.live import Region

__all__ = ["WebOptions", "create_app", "create_site", "serve"]

_SHUTDOWN_SECONDS = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What `graph-agent web` was asked for."""

    database: Path
    host: str = "127.0.0.1"
    port: int = 7420
    allow_remote: bool = False
    allow_hosts: Sequence[str] = ()
    is_read_only: bool = False
    runs_threads: bool = False


def create_site(options: WebOptions, port: int) -> Site:
    """The site of these options at a port."""
    access = Access(options.host, options.allow_hosts, port=port)
    runner = ThreadRunner(options.database) if options.runs_threads else None
    return Site(options.database, access, options.is_read_only, runner)


def create_app(site: Site) -> "ASGIApp":
    """The pages behind their guard."""
    routes = [
        *question_routes(site),
        *thread_routes(site),
        *task_routes(site),
        *state_routes(site),
        *call_routes(site),
        Route("/live", _live(site)),
        Route("/static/{name:path}", _static),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> "AsyncIterator[None]":
        yield
        site.live.close()
        if site.runner is not None:
            await site.runner.close()

    handlers: dict[Any, Any] = dict.fromkeys((AgentError, HTTPException, Exception), site.failure)
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan), site.access)


def _live(site: Site) -> Callable[[Request], Any]:
    readers: dict[str, Callable[[Request], Sequence[Region]]] = {
        "/": lambda request: inbox_regions(site, request)[0],
        "/threads": lambda request: thread_list_regions(site, request)[0],
        "/thread": lambda request: thread_regions(site, request)[0],
        "/tasks": lambda request: task_list_regions(site, request)[0],
        "/task": lambda request: task_regions(site, request)[0],
        "/state": lambda request: state_regions(site, request),
        "/calls": lambda request: call_list_regions(site, request)[0],
        "/call": lambda request: call_regions(site, request),
    }

    async def live(request: Request) -> Response:
        read = readers.get(request.query_params.get("path", ""))
        if read is None:
            raise Refused(404, "There is no such page to keep up to date.")
        if site.live.is_full:
            raise Refused(503, "Too many pages are open. Close some of them.")
        stream = site.live.stream(lambda: read(request), request.query_params.get("seen", ""))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    return live


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static_names():
        raise Refused(404, "There is no such file.")
    data, kind = static_file(name)
    return Response(data, media_type=kind, headers={"cache-control": _FOREVER})


def serve(options: WebOptions, say: Callable[[str], None]) -> None:
    """Serve the pages until a signal ends the server; the address is said once it can be opened.

    Raises:
        UsageError: the address is open to the network and nobody allowed that, or it cannot be used.
    """
    if not is_loopback(options.host) and not options.allow_remote:
        raise UsageError(
            f"--host {options.host} opens the pages to other machines, without encryption: whoever intercepts them "
            "can approve calls. Put a tunnel or a proxy with TLS in front of it, and add --allow-remote."
        )
    listener = _listen(options.host, options.port)
    port = listener.getsockname()[1]
    site = create_site(options, port)
    _report_in_one_line()
    config = uvicorn.Config(
        create_app(site),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    shown = socket.gethostname() if options.host in ("0.0.0.0", "::") else options.host  # noqa: S104 - compared, not bound
    host = f"[{shown}]" if ":" in shown else shown
    say(f"Open http://{host}:{port}/?token={site.access.token}")
    say("Anyone who has this address can answer for you. Ctrl-C ends the server.")
    with listener:
        asyncio.run(_Server(config, site).serve(sockets=[listener]))


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        UsageError: the address does not exist or is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"Port {port} is in use. Choose another one with --port, or a free one: --port 0."
            ) from error
        raise UsageError(f"Cannot listen at {host!r}, port {port}: {error.strerror or error}.") from error
    return listener


class _Server(uvicorn.Server):
    """A server whose open pages do not keep it from ending, and which ends on a signal without passing it on."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    @contextmanager
    def capture_signals(self) -> "Iterator[None]":
        """End on the first of these signals."""
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Also end the streams of open pages."""
        self._site.live.close()
        super().handle_exit(sig, frame)


class _OneLine(logging.Formatter):
    """The message, and the kind of a failure without its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage().strip().split("\n")[0]
        return escape(f"graph-agent: {text}{f' ({type(error).__name__}: {error})' if error else ''}")


def _report_in_one_line() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    for name in ("uvicorn.error", "graph_agent.web"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
