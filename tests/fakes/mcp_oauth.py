"""An MCP server that wants a login, with its authorization server, both made with the SDK, on a real port."""

import contextlib
import secrets
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

__all__ = ["LoginServer", "login_server"]


@dataclass
class LoginServer:
    """Grants what it is asked for, unless `refuses`; a token is valid for `seconds`."""

    url: str
    refuses: bool = False
    seconds: int = 3600
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    renewed: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(str(client.client_id))

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.renewed += 1
        return self._tokens(str(client.client_id))

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Nothing asks for it."""

    def _tokens(self, client_id: str) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(20)}", f"refresh-{secrets.token_hex(20)}"
        ends = int(time.time()) + self.seconds
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=[], expires_at=ends)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds)


@contextlib.contextmanager
def login_server() -> Iterator[LoginServer]:
    """The server with one tool, `add`, until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    provider: Any = LoginServer(f"{address}/mcp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = FastMCP(
            "login",
            auth_server_provider=provider,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(address),
                resource_server_url=AnyHttpUrl(f"{address}/mcp"),
                client_registration_options=ClientRegistrationOptions(enabled=True),
            ),
        )
        server.add_tool(lambda a, b: a + b, name="add", description="Add two numbers.")
        app = server.streamable_http_app()
    runner = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not runner.started:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield provider
    finally:
        runner.should_exit = True
        thread.join(30)
