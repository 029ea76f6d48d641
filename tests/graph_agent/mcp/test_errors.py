from pathlib import Path

import httpx
import pytest
from mcp import McpError
from mcp.types import ErrorData

from graph_agent.config.settings import McpServer
from graph_agent.mcp.errors import ServerNotReady, explain_error, sandbox_hint
from graph_agent.mcp.settings import ServerUnreachable
from graph_agent.mcp.transport import ServerLog
from tests.fakes.mcp_servers import McpTestServers
from tests.fakes.sandboxes import sandbox
from tests.fakes.web_site import Answer, WebSite

_CLOSED = ", but the sandbox blocks the network: mcp_servers.a.network = true allows it"
_WITHOUT = "mcp_servers.a.sandbox = false runs it outside"
_NET = McpServer(url="http://me:pw@x/mcp?key=secret")


def _answered(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://x/mcp")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, headers=headers))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            _answered(401),
            "answered 401; it requires credentials: graph-agent mcp login hub, or headers = { Authorization",
        ),
        (_answered(405), "answered 405; no MCP server at this address, which often ends in /mcp"),
        (
            _answered(302, Location="https://y/"),
            "answered 302; it redirects to https://y/; use that address if it is",
        ),
        (_answered(500), "http://x/mcp?… answered 500"),
        (ExceptionGroup("", [ExceptionGroup("", [_answered(500)])]), "http://x/mcp?… answered 500"),
        (
            McpError(ErrorData(code=32600, message="Session terminated")),
            "answered 404; no MCP server",
        ),
        (McpError(ErrorData(code=1, message="not today")), "it returned an error: not today"),
        (httpx.ConnectError("[Errno -2] Name or service not known"), "reached: there is no host of this name"),
        (httpx.ConnectError("CERTIFICATE_VERIFY_FAILED"), "its certificate is not trusted"),
        (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER]"), "does the address begin with http:// instead?"),
        (httpx.ReadTimeout(""), "cannot be reached: ReadTimeout"),
    ],
)
def test_each_way_an_address_fails_is_told_with_what_to_do_and_without_its_secrets(
    tmp_path: Path, error: Exception, said: str
) -> None:
    told = explain_error(error, "hub", _NET, ServerLog(tmp_path / "log"))

    assert (said in told, "pw" in told, "secret" in told) == (True, False, False)


async def test_a_page_in_the_place_of_a_server_is_told_at_once(tmp_path: Path) -> None:
    harbour = McpTestServers(tmp_path)
    with WebSite({"/": Answer(b"<html>", "text/html")}, post={"/": Answer(b"<html>", "text/html")}) as site:
        async with harbour.fleet(page=McpServer(url=site.url("/"))) as fleet:
            await fleet.wait_until_ready()

    (warning,) = harbour.warnings
    assert "no MCP server at this address, which often ends in /mcp" in warning
    assert "Unexpected content type: text/html" in warning


@pytest.mark.parametrize(
    ("server", "error", "said", "hint"),
    [
        (
            McpServer(command="npx"),
            ServerNotReady(),
            "",
            f". npx downloads packages{_CLOSED}",
        ),
        (
            McpServer(command="it"),
            OSError(),
            "getaddrinfo EAI_AGAIN x",
            f". It looks up a host name{_CLOSED}",
        ),
        (
            McpServer(command="it"),
            OSError(),
            "",
            f". It runs in the sandbox: mcp_servers.a.network = true allows the network, {_WITHOUT}",
        ),
        (
            McpServer(command="npx", network=True),
            OSError(),
            "",
            f". It runs in the sandbox; {_WITHOUT}",
        ),
        (McpServer(command="npx"), ServerUnreachable("no program"), "", ""),
        (McpServer(command="npx", sandbox=False), OSError(), "", ""),
        (McpServer(url="http://x/"), OSError(), "", ""),
    ],
)
def test_where_the_sandbox_may_be_why_it_says_what_opens_it(
    tmp_path: Path, server: McpServer, error: Exception, said: str, hint: str
) -> None:
    log = ServerLog(tmp_path / "log")
    log.begin()
    log.write(f"{said}\n".encode())

    assert sandbox_hint(error, "a", server, sandbox("bubblewrap", tmp_path), log) == hint
    assert sandbox_hint(error, "a", server, None, log) == ""
