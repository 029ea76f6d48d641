"""The two ways to a server: a program that is started, or an address that is reached. Speaks no protocol itself."""

import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from graph_agent.config.settings import McpServer
from tools.programs import find_program
from tools.sandbox import Confined, NoSandbox, Sandbox
from tools.sandbox.looking import is_there
from tools.shell_ops.environment import child_environment

__all__ = ["CannotReach", "Streams", "expanded", "opened"]

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONNECT_S = 30.0
_SILENCE_S = 300.0
"""Longest silence on an open stream; how long a call may take is limited elsewhere."""
_WITH_LOG = 'exec 2>>"$0"; exec "$@"'
"""What a server writes on its standard error goes to a file: on the terminal it could pretend to be the agent."""


class CannotReach(Exception):
    """The server cannot be started or reached; the message says why, without secrets."""


@asynccontextmanager
async def opened(
    server: McpServer, folder: Path, log: Path, sandbox: Sandbox | None = None
) -> AsyncIterator[Streams]:
    """The message streams of a server; it is ended, with all its processes, when the block is left.

    Args:
        server: what to start or reach.
        folder: where it is started.
        log: takes its standard error.
        sandbox: what it is started in, unless its settings say otherwise.

    Raises:
        CannotReach: the program does not exist, a variable it needs is not set, or no sandbox can be had though one
            is required.
    """
    if server.url is not None:
        async with _reached(server.url, _headers(server)) as streams:
            yield streams
    else:
        with _confined(server, sandbox) as confined:
            async with stdio_client(_command(server, folder, log, confined)) as streams:
                yield streams


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """The text with each `${NAME}` replaced.

    Raises:
        CannotReach: a variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise CannotReach(f"its settings name ${{{found[1]}}}, which is not set in the environment")
        return environment[found[1]]

    return _VARIABLE.sub(value, text)


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


def _command(server: McpServer, folder: Path, log: Path, confined: Confined | None) -> StdioServerParameters:
    environment = child_environment(os.environ)
    own = {name: expanded(value.get_secret_value(), os.environ) for name, value in server.env.items()}
    wanted = server.command or ""
    program = find_program(wanted, own.get("PATH", environment["PATH"]))
    if program is None:
        raise CannotReach(f"there is no program {wanted!r}; correct `command`, or install it")
    walls = confined.prefix if confined else ()
    around = confined.environment if confined else {}
    arguments = ["-c", _WITH_LOG, str(log), *_ended_with_us(), *walls, program, *server.args]
    return StdioServerParameters(
        command="/bin/sh",
        args=arguments,
        env={**environment, **around, **own},
        cwd=folder,
        encoding_error_handler="replace",
    )


def _ended_with_us() -> list[str]:
    """A prefix by which the kernel ends the server when the agent is killed, where there is such a program."""
    setpriv = find_program("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _headers(server: McpServer) -> dict[str, str]:
    return {name: expanded(value.get_secret_value(), os.environ) for name, value in server.headers.items()}


@asynccontextmanager
async def _reached(url: str, headers: dict[str, str]) -> AsyncIterator[Streams]:
    client = httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(_CONNECT_S, read=_SILENCE_S))
    async with client, streamable_http_client(url, http_client=client) as (read, write, _):
        yield read, write
