"""Log in to servers that require OAuth, with the SDK's client; tokens are in a private file of the data folder.

The data folder is closed to tools and commands. Tokens belong to an address: a server with another one gets none.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl

from graph_agent.config.paths import data_dir, locked_folder, make_private_folder, read_plain_text, replace_text
from graph_agent.errors import StorageError

__all__ = ["LoginFailed", "TokenFile", "log_in", "stored_login", "token_file"]

_LOGIN_S = 300.0
_CONNECT_S = 30.0
_EARLY_S = 30.0
"""How long before it expires a token is refreshed."""
_PAGE = (
    "<!doctype html><title>graph-agent</title><p>{}</p><p>You can close this page and return to the terminal.</p>"
)
_MAX_REQUEST = 64 * 1024


class LoginFailed(Exception):
    """The login did not succeed; the message says why, without secrets."""


def token_file(env: Mapping[str, str]) -> "TokenFile":
    """The user's own."""
    return TokenFile(data_dir(env) / "mcp-tokens.json")


@dataclass(frozen=True, slots=True)
class TokenFile:
    """By address: tokens, their expiry, the registered client, and where tokens are refreshed."""

    path: Path

    def entry(self, url: str) -> Mapping[str, Any]:
        """Of one address; empty for none.

        Raises:
            StorageError: the file cannot be read.
        """
        found = self._read().get(url)
        return found if isinstance(found, dict) else {}

    def update(self, url: str, **values: Any) -> None:
        """Change parts of an entry.

        Raises:
            StorageError: the file cannot be read or written.
        """
        self._change(lambda entries: {**entries, url: {**(entries.get(url) or {}), **values}})

    def forget(self, url: str) -> bool:
        """Remove an entry; False if there was none."""
        is_known = bool(self.entry(url))
        self._change(lambda entries: {other: entry for other, entry in entries.items() if other != url})
        return is_known

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(read_plain_text(self.path))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StorageError(f"{self.path} cannot be read: {error}. Move it away and log in again.") from error
        return found if isinstance(found, dict) else {}

    def _change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        try:
            make_private_folder(self.path.parent)
            with locked_folder(self.path.parent):
                # A new file of `replace_text` can be read by its owner alone.
                replace_text(self.path, json.dumps(change(self._read()), indent=1) + "\n")
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class _Storage:
    """The SDK's `TokenStorage` of one address."""

    file: TokenFile
    url: str
    is_new_login: bool = False
    """Whether stored values are ignored."""

    async def get_tokens(self) -> OAuthToken | None:
        stored = None if self.is_new_login else self.file.entry(self.url).get("tokens")
        return OAuthToken.model_validate(stored) if stored else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self.file.update(self.url, tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=ends)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        stored = None if self.is_new_login else self.file.entry(self.url).get("client")
        return OAuthClientInformationFull.model_validate(stored) if stored else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.file.update(self.url, client=client_info.model_dump(mode="json", exclude_none=True))


class _StoredLogin(OAuthClientProvider):
    """Sends the stored token, and refreshes it before it expires; never asks to log in."""

    def __init__(self, file: TokenFile, url: str) -> None:
        # The address of the metadata is never used: it is for a login, which nobody can do here.
        super().__init__(url, _client_metadata("http://127.0.0.1/callback"), _Storage(file, url))
        self._file = file

    async def _initialize(self) -> None:
        """Load what is stored, and what the SDK would only know after a login in this process."""
        await super()._initialize()
        entry, context = self._file.entry(self.context.server_url), self.context
        if (ends := entry.get("expires_at")) is not None:
            context.token_expiry_time = float(ends) - _EARLY_S
        if entry.get("metadata"):
            context.oauth_metadata = OAuthMetadata.model_validate(entry["metadata"])
        if entry.get("resource"):
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(entry["resource"])

    async def _refresh_token(self) -> httpx.Request:
        """Another process may have refreshed the token, which also replaces the refresh token."""
        await self._initialize()
        return await super()._refresh_token()


def stored_login(file: TokenFile, url: str) -> httpx.Auth | None:
    """The authorization of requests to an address; None without a login.

    Raises:
        StorageError: the file cannot be read.
    """
    return _StoredLogin(file, url) if file.entry(url).get("tokens") else None


async def log_in(file: TokenFile, url: str, show: Callable[[str], Awaitable[None]]) -> bool:
    """Log in at a server's authorization server and store the tokens; False if the server requires no login.

    Args:
        file: where the tokens are stored.
        url: the server's address.
        show: gets the address of the login page, which then redirects to this process.

    Raises:
        LoginFailed: the login was refused, took too long, or the server's answers cannot be used.
        StorageError: the tokens cannot be stored.
    """
    answer: asyncio.Future[tuple[str, str | None]] = asyncio.get_running_loop().create_future()
    async with _callback_server(answer) as redirect:
        provider = OAuthClientProvider(
            url, _client_metadata(redirect), _Storage(file, url, is_new_login=True), show, lambda: _wait(answer)
        )
        try:
            async with httpx.AsyncClient(auth=provider, timeout=_CONNECT_S) as client:
                response = await client.post(url, json=_INITIALIZE, headers=_HEADERS)
        except (OAuthFlowError, httpx.HTTPError, ValueError, ImportError) as error:
            raise LoginFailed(str(error) or type(error).__name__) from error
    context = provider.context
    if context.current_tokens is None:
        if response.is_success:
            return False
        raise LoginFailed(f"the server answered {response.status_code} and does not offer OAuth")
    kept = {"metadata": context.oauth_metadata, "resource": context.protected_resource_metadata}
    as_json = {
        name: None if one is None else one.model_dump(mode="json", exclude_none=True) for name, one in kept.items()
    }
    file.update(url, **as_json)
    if not response.is_success:
        raise LoginFailed(f"the server answered {response.status_code} to the new token")
    return True


_HEADERS = {"Accept": "application/json, text/event-stream"}
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "graph-agent", "version": "1"},
    },
}


def _client_metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="graph-agent",
        redirect_uris=[AnyUrl(redirect)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",  # noqa: S106 - the word for a client without a secret
    )


async def _wait(answer: "asyncio.Future[tuple[str, str | None]]") -> tuple[str, str | None]:
    try:
        return await asyncio.wait_for(answer, _LOGIN_S)
    except TimeoutError:
        raise OAuthFlowError(f"no login within {_LOGIN_S:g} s") from None


@asynccontextmanager
async def _callback_server(answer: "asyncio.Future[tuple[str, str | None]]") -> AsyncIterator[str]:
    """A web server on this machine that takes the one answer of the authorization server; yields its address."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            target = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode("ascii", "replace")
            found = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(found.query).items()}
            is_answer = found.path == "/callback" and ("code" in query or "error" in query)
            text = (
                "Not found."
                if not is_answer
                else "The login was refused."
                if "error" in query
                else "You are logged in."
            )
            body = _PAGE.format(text if is_answer else "Not found.").encode()
            status = b"200 OK" if is_answer else b"404 Not Found"
            head = b"Content-Type: text/html; charset=utf-8\r\nConnection: close\r\nContent-Length: %d" % len(body)
            writer.write(b"HTTP/1.1 %s\r\n%s\r\n\r\n%s" % (status, head, body))
            await writer.drain()
            if is_answer and not answer.done():
                if "error" in query:
                    reason = query.get("error_description") or query["error"]
                    answer.set_exception(OAuthFlowError(f"the login was refused: {reason[:200]}"))
                else:
                    answer.set_result((query["code"], query.get("state")))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=_MAX_REQUEST)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/callback"
