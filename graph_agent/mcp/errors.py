"""Explains why a server failed: what happened, and what to change, without secrets."""

import anyio
import httpx
from mcp import McpError
from mcp.client.auth import OAuthFlowError
from mcp.types import CONNECTION_CLOSED

from graph_agent.config.model_choice import display_url
from graph_agent.config.settings import McpServer
from graph_agent.mcp.settings import ServerUnreachable, package_runner
from graph_agent.mcp.transport import ServerLog
from tools.sandbox import Sandbox

__all__ = ["ServerNotReady", "explain_error", "is_connection_closed", "sandbox_hint"]

_UNRESOLVED = ("EAI_AGAIN", "ENOTFOUND", "name resolution", "Name or service not known", "getaddrinfo", "dns error")
"""How programs report that they cannot resolve a host name, as happens without a network."""
_LOG_LINES = 20
_STATUS_HINTS = {
    401: 'it requires credentials: graph-agent mcp login NAME, or headers = { Authorization = "Bearer ${TOKEN}" }',
    403: "it does not accept these credentials",
    404: "no MCP server at this address, which often ends in /mcp",
    405: "no MCP server at this address, which often ends in /mcp",
    429: "too many requests; try again later",
}


class ServerNotReady(Exception):
    """The server did not complete the initialisation; the message says how that showed."""


def explain_error(error: BaseException, name: str, server: McpServer, log: ServerLog) -> str:
    """Why a server ended, or did not start."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case ServerUnreachable() | ServerNotReady():
            return f"{error}{_invalid_output(server, log)}"
        case httpx.HTTPError() | OAuthFlowError():
            return _explain_http_error(error, name, server)
        case McpError() if not is_connection_closed(error):
            return _explain_error_response(error, server)
        case McpError() | anyio.BrokenResourceError() | anyio.ClosedResourceError() | ConnectionError():
            last = "".join(f"last line: {line}; " for line in log.last_lines(1))
            return f"it ended before it answered ({last}log: {log.path}){_invalid_output(server, log)}"
        case RuntimeError() if "protocol version" in str(error):
            return f"it uses an unsupported version of the protocol ({error})"
    return f"{type(error).__name__}: {error}"


def _explain_error_response(error: McpError, server: McpServer) -> str:
    if server.url is not None and error.error.message == "Session terminated":
        # This is how the library reports a 404 to the first request.
        return f"{display_url(server.url)} answered 404; {_STATUS_HINTS[404]}"
    return f"it returned an error: {error.error.message}"


def is_connection_closed(error: McpError) -> bool:
    """Whether the library reports it; servers use the same code for errors of their own."""
    return error.error.code == CONNECTION_CLOSED and error.error.message == "Connection closed"


def sandbox_hint(
    error: BaseException, name: str, server: McpServer, sandbox: Sandbox | None, log: ServerLog
) -> str:
    """What to change where the sandbox may be why a program failed; empty where it cannot be."""
    if isinstance(error, ServerUnreachable) or server.command is None or not server.sandbox:
        return ""
    if sandbox is None or not sandbox.is_available:
        return ""
    key = f"mcp_servers.{name}"
    if sandbox.rules.network or server.network:
        return f". It runs in the sandbox; {key}.sandbox = false runs it outside"
    output = " ".join(log.last_lines(_LOG_LINES))
    if runner := package_runner(server):
        cause = f"{runner} downloads packages"
    elif any(sign in output for sign in _UNRESOLVED):
        cause = "It looks up a host name"
    else:
        options = f"{key}.network = true allows the network, {key}.sandbox = false runs it outside"
        return f". It runs in the sandbox: {options}"
    return f". {cause}, but the sandbox blocks the network: {key}.network = true allows it"


def _explain_http_error(error: httpx.HTTPError | OAuthFlowError, name: str, server: McpServer) -> str:
    if isinstance(error, OAuthFlowError):
        return f"its login has expired and could not be refreshed; log in again: graph-agent mcp login {name}"
    address = display_url(server.url or "")
    if isinstance(error, httpx.HTTPStatusError):
        response = error.response
        location = response.headers.get("location")
        redirect = f"it redirects to {location}; use that address if it is the one you mean" if location else ""
        hint = _STATUS_HINTS.get(response.status_code, "").replace("NAME", name) or redirect
        return f"{address} answered {response.status_code}{f'; {hint}' if hint else ''}"
    text = str(error)
    if "CERTIFICATE" in text:
        reason = f"its certificate is not trusted ({text}); name your certificate authorities in SSL_CERT_FILE"
    elif "SSL" in text:
        reason = f"TLS failed ({text}); does the address begin with http:// instead?"
    elif any(sign in text for sign in _UNRESOLVED):
        reason = "there is no host of this name"
    elif "connection attempts failed" in text:
        reason = "nothing answers there"
    else:
        reason = text or type(error).__name__
    return f"{address} cannot be reached: {reason}"


def _invalid_output(server: McpServer, log: ServerLog) -> str:
    if not log.invalid_output:
        return ""
    if server.url is not None:
        return f"; it sent something that is not an MCP message: {log.invalid_output}"
    return f"; its standard output is not MCP messages: {log.invalid_output!r}"
