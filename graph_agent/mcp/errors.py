"""Why a server failed, in words for its user: what happened, and what to change. Without secrets."""

import anyio
import httpx
from mcp import McpError
from mcp.types import CONNECTION_CLOSED

from graph_agent.config.model_choice import display_address
from graph_agent.config.settings import McpServer
from graph_agent.mcp.log import ServerLog
from graph_agent.mcp.settings import ServerUnreachable, fetches_first
from tools.sandbox import Sandbox

__all__ = ["NoAnswer", "is_closed", "way_out", "why"]

_UNRESOLVED = ("EAI_AGAIN", "ENOTFOUND", "name resolution", "Name or service not known", "getaddrinfo", "dns error")
"""How programs say that they cannot look a name up, as happens without a network."""
_LOOKED_AT_LINES = 20
_STATUSES = {
    401: 'it wants credentials: headers = { Authorization = "Bearer ${TOKEN}" } sends them; OAuth is not supported',
    403: "it does not take these credentials",
    404: "nothing speaks the protocol at this address, which often ends in /mcp",
    405: "nothing speaks the protocol at this address, which often ends in /mcp",
    429: "it was asked too often; try later",
}


class NoAnswer(Exception):
    """It was not greeted back; the message says how that showed."""


def why(error: BaseException, server: McpServer, log: ServerLog) -> str:
    """What ended a server, or kept it from beginning."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case ServerUnreachable() | NoAnswer():
            return f"{error}{_stray(server, log)}"
        case httpx.HTTPError():
            return _of_address(error, server)
        case McpError() if not is_closed(error):
            return _refused(error, server)
        case McpError() | anyio.BrokenResourceError() | anyio.ClosedResourceError() | ConnectionError():
            return f"it ended before it answered ({_last_line(log)}all of it in {log.path}){_stray(server, log)}"
        case RuntimeError() if "protocol version" in str(error):
            return f"it speaks a version of the protocol that is not known here ({error})"
    return f"{type(error).__name__}: {error}"


def _of_address(error: httpx.HTTPError, server: McpServer) -> str:
    if not isinstance(error, httpx.HTTPStatusError):
        return f"{_address(server)} cannot be reached: {_unreached(error)}"
    status = error.response.status_code
    hint = _STATUSES.get(status, _location(error.response))
    return f"{_address(server)} answered {status}{f'; {hint}' if hint else ''}"


def _address(server: McpServer) -> str:
    return display_address(server.url or "")


def _refused(error: McpError, server: McpServer) -> str:
    if server.url is not None and error.error.message == "Session terminated":
        # How the library tells that status of a first request.
        return f"{_address(server)} answered 404; {_STATUSES[404]}"
    return f"it refused: {error.error.message}"


def is_closed(error: McpError) -> bool:
    """Whether the library says so itself: servers have the same number for failures of their own."""
    return error.error.code == CONNECTION_CLOSED and error.error.message == "Connection closed"


def way_out(error: BaseException, name: str, server: McpServer, sandbox: Sandbox | None, log: ServerLog) -> str:
    """What to change where the sandbox may be why a program failed; empty where it cannot be."""
    if isinstance(error, ServerUnreachable) or server.command is None or not server.sandbox:
        return ""
    if sandbox is None or not sandbox.is_available:
        return ""
    key = f"mcp_servers.{name}"
    if sandbox.rules.network or server.network:
        return f". It runs in the sandbox; {key}.sandbox = false does without"
    wants = _wants_network(server, log)
    if wants:
        return f". {wants}, which the sandbox keeps closed: {key}.network = true opens it"
    return f". It runs in the sandbox: {key}.network = true opens the network, {key}.sandbox = false does without"


def _wants_network(server: McpServer, log: ServerLog) -> str:
    if program := fetches_first(server):
        return f"{program} fetches from the network"
    said = " ".join(log.last_lines(_LOOKED_AT_LINES))
    return "It looks for a name in the network" if any(sign in said for sign in _UNRESOLVED) else ""


def _unreached(error: httpx.HTTPError) -> str:
    said = str(error)
    if "CERTIFICATE" in said:
        return f"its certificate is not trusted ({said}); SSL_CERT_FILE names a file of authorities to trust"
    if "SSL" in said:
        return f"it does not speak TLS as it should ({said}); does it begin with http:// instead?"
    if any(sign in said for sign in _UNRESOLVED):
        return "there is no host of this name"
    return "nothing answers there" if "connection attempts failed" in said else said or type(error).__name__


def _location(response: httpx.Response) -> str:
    location = response.headers.get("location")
    return f"it leads to {location}; give that address if it is the one you mean" if location else ""


def _last_line(log: ServerLog) -> str:
    return "".join(f"its last line: {line}; " for line in log.last_lines(1))


def _stray(server: McpServer, log: ServerLog) -> str:
    if not log.stray:
        return ""
    if server.url is not None:
        return f"; what it sent is no message of the protocol: {log.stray}"
    return f"; what it writes on its output is no message of the protocol: {log.stray!r}"
