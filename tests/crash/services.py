"""What stands beside the product in a trial: a server of tools that notes, a web site that counts."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from graph_agent.config.settings import McpServer, PolicySettings, Settings
from tests.crash.scenes import Scene
from tests.crash.world import World

__all__ = ["settings_of", "web_site"]

_NOTES = Path(__file__).parents[1] / "fakes" / "mcp_notes.py"
_CALL_S = 20.0


def settings_of(scene: Scene, world: World) -> Settings:
    """The settings of a life in this scene. Its server is trusted, its web site may be asked without asking."""
    if scene.fetches:
        policy = PolicySettings(allow=(f"web_fetch(127.0.0.1:{world.port})",))
        return Settings(database=world.database, policy=policy)
    if not scene.has_server:
        return Settings(database=world.database, sandbox="off" if scene.in_the_open else "on")
    arguments = ("-S", "-E", str(_NOTES), str(world.workspace / "effects"))
    server = McpServer(command=sys.executable, args=arguments, timeout=_CALL_S)
    return Settings(
        database=world.database,
        sandbox="off",
        mcp_servers={"notes": server},
        origins={"mcp_servers.notes": "the scene"},
    )


@contextlib.contextmanager
def web_site(scene: Scene, world: World) -> Iterator[None]:
    """A site in a process of its own that writes down each page it is asked for, while the block runs."""
    if not scene.fetches:
        yield
        return
    site = HTTPServer(("127.0.0.1", 0), _counting(world.folder / "fetched"))
    (world.folder / "port").write_text(str(site.server_address[1]))
    child = os.fork()
    if child == 0:
        site.serve_forever()
    site.server_close()
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _counting(record: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class names it so
            """Nothing is printed."""

        def do_GET(self) -> None:
            with record.open("a") as file:
                file.write(f"{self.path.removeprefix('/')}\n")
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.end_headers()
                self.wfile.write(b"a page\n")

    return Handler
