"""The HTTP client of one endpoint: encodes requests, streams responses, and lists the endpoint's models."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import openai
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from graph_agent.config.model_choice import display_url
from graph_agent.config.redaction import model_secrets
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ConfigError, ModelError, UsageError
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.early_request import EarlyRequest, trusted_certificates
from graph_agent.model.openai.errors import StalledReply, Target, UnknownProtocol, classify_error
from graph_agent.model.openai.request_body import NO_KEY, EncodedRequest, RequestEncoder
from graph_agent.model.openai.stream import iter_payloads, raise_if_stalled
from tools.proxies import ProxyUnusable, proxy_for

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "EndpointClient",
    "list_model_entries",
    "list_models",
    "open_client",
    "request_target",
    "resolve_model_name",
]

_MIN_SECRET = 4
"""Shorter texts occur anywhere and are no secret."""

_STREAM_OPTIONS: Any = {
    "headers": {"Content-Type": "application/json", "X-Stainless-Raw-Response": "stream"},
    "security": {"bearer_auth": True},
}
"""Options by which the client returns a response unread, as its `with_streaming_response` does."""


class EndpointClient(ChatOpenAI):
    """The client of one endpoint and model.

    ChatOpenAI owns the HTTP client. It does not encode requests, which also leave before it is loaded, nor parse
    responses: it drops what servers other than OpenAI's send, such as calls without an index, and reasoning.
    """

    _encoder: RequestEncoder = PrivateAttr()
    _stall_s: float = PrivateAttr(default=300.0)
    _connect_s: float = PrivateAttr(default=10.0)

    def request_body(
        self,
        messages: "Sequence[BaseMessage]",
        tools: Sequence[Mapping[str, Any]],
        capabilities: Capabilities,
        schema: Mapping[str, Any] | None = None,
    ) -> bytes:
        """See `RequestEncoder.body`."""
        return self._encoder.body(messages, tools, capabilities, schema)

    async def payloads(self, body: bytes) -> AsyncGenerator[str, None]:
        """The data of each event of a stream, or the one body of a response that is not streamed.

        Raises:
            openai.APIError: the endpoint could not be reached or answered with an error status.
            BrokenReply: the connection broke while the response arrived.
            StalledReply: no part of the response arrived for too long, even if the connection is kept open.
            UnknownProtocol: a web page answered.
        """
        # Not `chat.completions.create`: it would check every message of the history against its type declarations
        # and encode all of them again, which for a long thread costs more than everything else together.
        request = self.root_async_client.post(
            "/chat/completions", cast_to=openai.AsyncAPIResponse[object], content=body, options=_STREAM_OPTIONS
        )
        try:
            # However slowly their bytes arrive, the headers must be complete by then.
            async with asyncio.timeout(self._stall_s + self._connect_s):
                response = await request
        except TimeoutError:
            raise StalledReply(f"{self._stall_s + self._connect_s:g} s") from None
        try:
            content_type = str(response.headers.get("content-type", "")).lower()
            async with aclosing(raise_if_stalled(response.iter_bytes(), self._stall_s)) as blocks:
                async for payload in iter_payloads(blocks, content_type):
                    yield payload
        finally:
            await response.close()

    async def close(self) -> None:
        """Close the connections that are kept for the next request, and that of an early one."""
        await self.root_async_client.close()


def open_client(model: ModelSettings, name: str, early: EarlyRequest | None = None) -> EndpointClient:
    """The client for one model of the configured endpoint; it connects at the first request.

    Raises:
        ConfigError: the certificate file cannot be read.
    """
    secret = model.api_key.get_secret_value() if model.api_key else NO_KEY

    async def key() -> str:
        return secret

    client = EndpointClient(
        model=name,
        base_url=model.endpoint,
        # As a coroutine function: with a plain key ChatOpenAI would set up a second, blocking client.
        api_key=key,
        http_async_client=_http_client(model, early),
        timeout=openai.Timeout(model.timeout_s, connect=model.connect_timeout_s),
        default_headers={header: value.get_secret_value() for header, value in model.headers.items()},
        # Else ChatOpenAI takes OPENAI_PROXY from the environment and rejects it beside our own client, and warns
        # that its own one does not use the proxies of the environment.
        openai_proxy="",
        http_socket_options=(),
        max_retries=0,
        use_responses_api=False,
        stream_usage=False,
    )
    client._encoder = RequestEncoder(model, name)  # noqa: SLF001 -- its constructor takes fields of the request only
    client._stall_s = model.timeout_s  # noqa: SLF001 -- likewise
    client._connect_s = model.connect_timeout_s  # noqa: SLF001 -- likewise
    return client


def request_target(model: ModelSettings, name: str, origins: Mapping[str, str] | None = None) -> Target:
    """Where requests for this model go, with the secrets that no message may show.

    Args:
        origins: the origins of the settings.
    """
    set_by = {key: _set_by(key, variable, origins or {}) for key, variable in _VARIABLES.items()}
    if model.base_url is None:
        set_by["base_url"] = ""
    secrets = tuple(secret for secret in model_secrets(model) if len(secret) >= _MIN_SECRET)
    return Target(display_url(model.endpoint), name, model.api_key is not None, secrets, set_by)


_VARIABLES = {"base_url": "GRAPH_AGENT_BASE_URL", "api_key": "OPENAI_API_KEY", "name": "GRAPH_AGENT_MODEL"}


def _set_by(key: str, variable: str, origins: Mapping[str, str]) -> str:
    """The variable or option that sets it, or the key with its file."""
    origin = origins.get(f"model.{key}", variable)
    return f"{key} in {origin}" if "/" in origin else origin


def _http_client(model: ModelSettings, early: EarlyRequest | None) -> openai.DefaultAsyncHttpxClient:
    """With the configured certificates, and the proxy of the environment for this endpoint.

    Raises:
        ConfigError: the proxy or the certificates cannot be used.
    """
    try:
        proxy = proxy_for(model.endpoint)
    except ProxyUnusable as error:
        raise ConfigError(str(error)) from error
    parts = urlsplit(model.endpoint)
    is_open = parts.scheme == "http" and parts.hostname in _LOOPBACK and proxy is None
    # Reading certificates takes long. A server elsewhere may redirect to an https:// address.
    certificates = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_open else trusted_certificates(model)
    # The environment was read already: the library would set up proxies that this address does not use.
    if early is not None and proxy is None:
        transport = _EarlyTransport(early, httpx2.AsyncHTTPTransport(verify=certificates, trust_env=False))
        return openai.DefaultAsyncHttpxClient(transport=transport, trust_env=False)
    return openai.DefaultAsyncHttpxClient(verify=certificates, proxy=proxy, trust_env=False)


class _EarlyTransport(httpx2.AsyncBaseTransport):
    """Answers the first request from where the same one was sent early; everything else is sent as ever."""

    def __init__(self, early: EarlyRequest, ordinary: httpx2.AsyncBaseTransport) -> None:
        self._early: EarlyRequest | None = early
        self._ordinary = ordinary

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        early, self._early = self._early, None
        if early is not None:
            answer = None
            try:
                body = await request.aread()
                if early.request is None and _are_equal(own := early.encode(body), request, body):
                    early.send_if_connected(own)
                if early.request is not None and _are_equal(early.request, request, body):
                    answer = await early.answer()
            finally:
                if answer is None:
                    await early.close()
            if answer is not None:
                stream = _EarlyStream(answer.blocks, asyncio.ensure_future(early.clear_record()))
                # As bytes: the library takes only ASCII as text.
                headers = [
                    (name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()
                ]
                return httpx2.Response(answer.status, headers=headers, stream=stream)
        return await self._ordinary.handle_async_request(request)

    async def aclose(self) -> None:
        if self._early is not None:
            await self._early.close()
        await self._ordinary.aclose()


class _EarlyStream(httpx2.AsyncByteStream):
    def __init__(self, blocks: AsyncGenerator[bytes, None], clearing: "asyncio.Future[None]") -> None:
        self._blocks = blocks
        self._clearing = clearing

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._blocks:
            yield block

    async def aclose(self) -> None:
        await self._blocks.aclose()
        await self._clearing


_CLIENT_HEADERS = ("accept", "accept-encoding", "connection", "content-length", "host", "user-agent")


def _are_equal(early: EncodedRequest, request: httpx2.Request, body: bytes) -> bool:
    """Whether a request would be answered like the early one: only headers that describe the client may differ."""
    own = {
        name: value
        for name, value in request.headers.items()
        if name not in _CLIENT_HEADERS and not name.startswith("x-stainless-")
    }
    headers = {name.lower(): value for name, value in early.headers.items()}
    return early.body == body and httpx2.URL(early.url) == request.url and headers == own


_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_LISTED = 12


async def list_models(settings: Settings) -> tuple[str, ...]:
    """The names in the endpoint's model list, in its order.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    return tuple(str(entry["id"]) for entry in await list_model_entries(settings.model, settings.origins))


async def list_model_entries(
    model: ModelSettings, origins: Mapping[str, str] | None = None
) -> tuple[Mapping[str, Any], ...]:
    """The endpoint's model list with all fields; every entry has an `id`.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    client = open_client(model, "")
    try:
        response = await client.root_async_client.models.with_raw_response.list()
        return _parse_model_list(response.content)
    except (openai.APIError, UnknownProtocol) as error:
        failure = classify_error(error, request_target(model, "", origins))
        raise ModelError(f"The list of models cannot be read. {failure.message}") from None
    finally:
        await client.close()


def _parse_model_list(body: bytes) -> tuple[Mapping[str, Any], ...]:
    """The usable entries of the list; a server may send anything at this address.

    Raises:
        UnknownProtocol: it is no list of models.
    """
    try:
        page = json.loads(body)
    except (ValueError, RecursionError):
        page = None
    entries = page.get("data") or () if isinstance(page, Mapping) else None
    if not isinstance(entries, list | tuple):
        raise UnknownProtocol("its answer is not a list of models")
    return tuple(entry for entry in entries if isinstance(entry, Mapping) and entry.get("id"))


async def resolve_model_name(settings: Settings) -> str:
    """The configured model, else the only one of the endpoint.

    Raises:
        UsageError: none is configured and the endpoint has none or several.
        ModelError: the endpoint did not answer with a list.
    """
    if settings.model.name is not None:
        return settings.model.name
    names = await list_models(settings)
    if len(names) == 1:
        return names[0]
    listed = ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
    found = f"offers {len(names)} models ({listed})" if names else "lists no models"
    raise UsageError(
        f"{display_url(settings.model.endpoint)} {found}, and none is configured: set GRAPH_AGENT_MODEL, "
        "give --model NAME, or choose one in the chat with /model NAME."
    )
