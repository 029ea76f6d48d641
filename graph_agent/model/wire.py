"""Sends one request through langchain-openai's client and hands on the answer as it stands on the wire.

ChatOpenAI builds the request and owns the client; its own reading of the answer is not used, because it drops what
servers other than OpenAI's send: calls without an index, reasoning, arguments that are objects.
"""

import os
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import openai
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from graph_agent.config.model_settings import ModelSettings
from graph_agent.errors import ConfigError
from graph_agent.model.dialect import Dialect
from graph_agent.model.encoded import EncodedMessages, encoded
from graph_agent.model.events import payloads_of
from graph_agent.model.failures import BrokenReply
from graph_agent.model.silence import begun_in_time, unless_silent

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["Wire", "open_wire"]

_NO_KEY = "none"
"""Sent where no key is set: the client insists on one, local servers do not look at it."""

_AS_IT_ARRIVES: Any = {
    "headers": {"Content-Type": "application/json", "X-Stainless-Raw-Response": "stream"},
    "security": {"bearer_auth": True},
}
"""Options of a request whose answer the client hands on unread, as its `with_streaming_response` does."""


class Wire(ChatOpenAI):
    """The client of one endpoint and model."""

    _encoded: EncodedMessages | None = PrivateAttr(default=None)
    _around: "tuple[Sequence[Mapping[str, Any]], Dialect, dict[str, Any], bytes] | None" = PrivateAttr(default=None)
    """What is beside the messages of the last request, as value and as bytes, for these tools and this dialect."""
    _silence_s: float = PrivateAttr(default=300.0)
    _connect_s: float = PrivateAttr(default=10.0)

    def request_body(
        self, messages: "Sequence[BaseMessage]", tools: Sequence[Mapping[str, Any]], dialect: Dialect
    ) -> bytes:
        """What is sent: histories of the same messages give the same bytes each time."""
        if self._around is None or self._around[0] is not tools or self._around[1] != dialect:
            around = self._beside_messages(tools, dialect)
            self._around = (tools, dialect, around, encoded(around))
        _, _, around, written = self._around
        if "messages" in around:
            return written
        self._encoded = self._encoded or EncodedMessages(self._as_sent)
        return written[:-1] + b',"messages":' + self._encoded.of(messages, dialect) + b"}"

    async def payloads(self, body: bytes) -> AsyncGenerator[str, None]:
        """The data of each event of a stream, or the one body of an answer that is not streamed.

        Raises:
            openai.APIError: the endpoint could not be reached or answered with an error status.
            BrokenReply: the connection broke while the answer arrived.
            SilentReply: nothing of the answer arrived for too long, whatever else keeps the connection open.
            NotAnApi: a web page answered.
        """
        # Not `chat.completions.create`: it would walk every message of the history against its type declarations
        # and write all of them out anew, which for a long thread costs more than all else together.
        sent = self.root_async_client.post(
            "/chat/completions", cast_to=openai.AsyncAPIResponse[object], content=body, options=_AS_IT_ARRIVES
        )
        response = await begun_in_time(sent, self._silence_s + self._connect_s)
        try:
            content_type = str(response.headers.get("content-type", "")).lower()
            async with aclosing(unless_silent(_blocks(response), self._silence_s)) as blocks:
                async for payload in payloads_of(blocks, content_type):
                    yield payload
        finally:
            await response.close()

    async def close(self) -> None:
        """End the connections that are kept for the next request."""
        await self.root_async_client.close()

    def _beside_messages(self, tools: Sequence[Mapping[str, Any]], dialect: Dialect) -> dict[str, Any]:
        options: dict[str, Any] = {"stream": dialect.streams}
        if dialect.streams and dialect.counts_streams:
            options["stream_options"] = {"include_usage": True}
        if tools:
            options["tools"] = list(tools)
        payload = self._get_request_payload([], **options)
        extra = payload.pop("extra_body", None) or {}
        return {key: value for key, value in payload.items() if key != "messages"} | extra

    def _as_sent(self, messages: "Sequence[BaseMessage]", dialect: Dialect) -> list[dict[str, Any]]:
        converted: list[dict[str, Any]] = self._get_request_payload(list(messages))["messages"]
        for message, sent in zip(messages, converted, strict=True):
            if not dialect.takes_null:
                sent["content"] = sent.get("content") or ""
            if message.type == "ai":
                _send_back(message.response_metadata, sent, dialect)
        return converted


def open_wire(model: ModelSettings, name: str) -> Wire:
    """The client for one model of the configured endpoint; connects at the first request.

    Raises:
        ConfigError: the certificate file cannot be read.
    """
    secret = model.api_key.get_secret_value() if model.api_key else _NO_KEY

    async def key() -> str:
        return secret

    wire = Wire(
        model=name,
        base_url=model.endpoint,
        # As a coroutine function: with a plain key ChatOpenAI would set up a second, blocking client.
        api_key=key,
        http_async_client=_http_client(model),
        timeout=openai.Timeout(model.timeout_s, connect=model.connect_timeout_s),
        default_headers={header: value.get_secret_value() for header, value in model.headers.items()},
        extra_body=model.extra_body or None,
        # Else ChatOpenAI takes OPENAI_PROXY from the environment and refuses it beside a client of ours.
        openai_proxy="",
        max_retries=0,
        use_responses_api=False,
        stream_usage=False,
    )
    wire._silence_s = model.timeout_s  # noqa: SLF001 -- its constructor takes fields of the request only
    wire._connect_s = model.connect_timeout_s  # noqa: SLF001 -- likewise
    return wire


def _send_back(kept: Mapping[str, Any], sent: dict[str, Any], dialect: Dialect) -> None:
    """Give an earlier reply what came beside it, for servers that insist on it."""
    if dialect.wants_reasoning:
        sent["reasoning_content"] = str(kept.get("reasoning") or "")
    calls = sent.get("tool_calls") or []
    for place, extra in (kept.get("extra_content") or {}).items() if dialect.wants_signatures else ():
        if int(place) < len(calls):
            calls[int(place)]["extra_content"] = extra


def _http_client(model: ModelSettings) -> openai.DefaultAsyncHttpxClient:
    """With the certificates that are set; proxies come from the environment."""
    if model.ca_file is None:
        return _client_through_proxies()
    try:
        context = ssl.create_default_context(cafile=model.ca_file.expanduser())
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"model.ca_file = {str(model.ca_file)!r} cannot be read as certificates: {error}."
        ) from error
    return _client_through_proxies(verify=context)


def _client_through_proxies(**options: Any) -> openai.DefaultAsyncHttpxClient:
    try:
        return openai.DefaultAsyncHttpxClient(**options)
    except (ImportError, ValueError) as error:
        why = "SOCKS is not spoken here." if isinstance(error, ImportError) else str(error)
        raise ConfigError(
            f"The proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used: {why} "
            "Set an http:// one, or name the model's host in NO_PROXY."
        ) from error
    except OSError as error:
        named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or "the system's"
        raise ConfigError(
            f"The certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read ({named}): {error}. "
            "Name a file of certificates in PEM form, or unset it."
        ) from error


async def _blocks(response: Any) -> AsyncGenerator[bytes, None]:
    broken: Exception | None = None
    try:
        async for block in response.iter_bytes():
            yield block
    except Exception as error:  # noqa: BLE001 -- the boundary to the HTTP library, whose exceptions are not ours to name
        broken = error
    if broken is not None:
        raise BrokenReply(f"{type(broken).__name__}: {broken}") from broken
