"""The two ways to a server: a program that is started, or an address that is reached. Speaks no protocol itself."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from graph_agent.config.settings import McpServer
from graph_agent.mcp.address import reached
from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.pipes import Launch, Streams, served
from graph_agent.mcp.reaching import CannotReach, environment_of, headers_of, program_of
from tools.programs import find_program
from tools.sandbox import Confined, NoSandbox, Sandbox
from tools.sandbox.looking import is_there

__all__ = ["opened"]


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
        CannotReach: the program does not exist, a variable it needs is not set, or no sandbox can be had though one
            is required.
    """
    if server.url is not None:
        async with reached(server.url, headers_of(server)) as streams:
            yield streams
    else:
        with _confined(server, sandbox) as confined:
            async with served(_launch(server, folder, confined), log) as streams:
                yield streams


@contextmanager
def _confined(server: McpServer, sandbox: Sandbox | None) -> Iterator[Confined | None]:
    if sandbox is None or not server.sandbox:
        yield None
        return
    terms = sandbox.terms
    own = replace(terms, network=terms.network or server.network, visible=(*terms.visible, *_named_paths(server)))
    try:
        with sandbox.with_terms(own).confined(
            " ".join((server.command or "", *server.args)), is_lasting=True
        ) as found:
            yield found
    except NoSandbox as refusal:
        raise CannotReach(f"it was not started, for want of a sandbox: {refusal}") from refusal


def _named_paths(server: McpServer) -> Iterator[Path]:
    """What its command line names in full; of a virtual environment all of it."""
    for word in (server.command or "", *server.args):
        path = Path(word)
        if path.is_absolute():
            yield path.parent.parent if is_there(path.parent.parent / "pyvenv.cfg") else path


def _launch(server: McpServer, folder: Path, confined: Confined | None) -> Launch:
    environment = environment_of(server)
    program = program_of(server, environment)
    walls = confined.prefix if confined else ()
    around = {**confined.environment, **{name: environment[name] for name in server.env}} if confined else {}
    return Launch((*_ended_with_us(), *walls, program, *server.args), {**environment, **around}, folder)


def _ended_with_us() -> list[str]:
    """A prefix by which the kernel ends the server when the agent is killed, where there is such a program."""
    setpriv = find_program("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
