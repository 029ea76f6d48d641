"""The chat-model port over any OpenAI-compatible endpoint: sends requests, retries them, learns its capabilities.

Also the HTTP client of one endpoint, the retry policy, and the endpoint's list of models.
"""

import asyncio
import json
import os
import random
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import openai
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr

from graph_agent.config.model_choice import display_url
from graph_agent.config.redaction import model_secrets
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ConfigError, ContextOverflow, ModelError, UsageError
from graph_agent.model.openai.capabilities import (
    Capabilities,
    CapabilityStore,
    apply_settings,
    revise_capabilities,
)
from graph_agent.model.openai.context_windows import parse_token_limit
from graph_agent.model.openai.errors import (
    TRANSIENT,
    BrokenReply,
    Failure,
    ModelUnavailable,
    ReplyError,
    Target,
    UnknownProtocol,
    classify_error,
)
from graph_agent.model.openai.messages import LoadImage, has_images, insert_images
from graph_agent.model.openai.prompted_tools import FormatTools, reply_with_corrections, to_prompt_protocol
from graph_agent.model.openai.request_body import MessageEncoder, encode_json
from graph_agent.model.openai.stream import ReplyStream, iter_payloads, raise_if_stalled, wait_for_headers
from graph_agent.model.single_model import messages_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "MAX_ATTEMPTS",
    "MAX_ATTEMPTS_BEFORE_FALLBACK",
    "MAX_RETRY_AFTER_S",
    "EndpointClient",
    "ModelOptions",
    "OpenAIModel",
    "RetryPolicy",
    "format_tools_json",
    "list_model_entries",
    "list_models",
    "no_image",
    "open_client",
    "request_target",
    "resolve_model_name",
]


def format_tools_json(tools: Sequence[Mapping[str, Any]]) -> str:
    """Function declarations as JSON, one per line."""
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def no_image(_: str) -> bytes | None:
    """Loads no image."""
    return None


MAX_RETRY_AFTER_S = 60.0
"""Longest wait that a server may ask for; a longer one is a final failure."""
_MAX_RETRIES = {"final": 0, "too_long": 0, "unreachable": 2, "empty": 3, "busy": 6, "broken": 6}
MAX_ATTEMPTS = _MAX_RETRIES["busy"] + 1
"""Requests for one reply, whatever goes wrong with them."""
MAX_ATTEMPTS_BEFORE_FALLBACK = 5
"""The same where there is a fallback model: a busy model is given up after some eight seconds."""
_FIRST_WAIT_S = 0.5
_JITTER = 0.25


class RetryPolicy:
    """Counts the attempts of one request, and says how long to wait before the next one."""

    def __init__(self, jitter: random.Random | None = None, *, max_attempts: int = MAX_ATTEMPTS) -> None:
        self.attempts = 1
        """Requests made, including the running one."""
        self._max_attempts = max_attempts
        self._by_kind: Counter[str] = Counter()
        self._jitter = jitter or random.Random()  # noqa: S311 -- spreads waits, guards nothing

    def next_delay(self, failure: Failure) -> float | None:
        """Seconds until the next attempt, which is counted by this call; None: there is none."""
        kind = failure.kind
        self._by_kind[kind] += 1
        retry_after = failure.retry_after_s or 0.0
        has_retries = self._by_kind[kind] <= _MAX_RETRIES[kind] and self.attempts < self._max_attempts
        if not has_retries or retry_after > MAX_RETRY_AFTER_S:
            return None
        doublings = self._by_kind[kind] if kind == "unreachable" else self.attempts
        self.attempts += 1
        delay = _FIRST_WAIT_S * 2.0 ** (doublings - 1)
        return max(delay, retry_after) + delay * _JITTER * self._jitter.random()

    def final_message(self, failure: Failure) -> str:
        """The failure's message, and why there is no further attempt."""
        if (failure.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            return f"{failure.message} It asks for a wait of {failure.retry_after_s:.0f} s: try again later."
        return failure.message if self.attempts == 1 else f"{failure.message} Gave up after {self.attempts} tries."


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What all models of a process share."""

    capabilities: CapabilityStore = field(default_factory=CapabilityStore)
    format_tools: FormatTools = format_tools_json
    """Formats tools as text, for models without function calling."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    load_image: LoadImage = no_image
    max_attempts: int = MAX_ATTEMPTS


class OpenAIModel:
    """A `ChatModel` behind an endpoint. Close it when it is no longer needed."""

    def __init__(self, settings: ModelSettings, name: str, options: ModelOptions | None = None) -> None:
        self._settings = settings
        self._options = options or ModelOptions()
        self._target = request_target(settings, name)
        self._client = open_client(settings, name)
        self._capabilities: Capabilities | None = None

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return f"{self._target.model} @ {urlsplit(self._target.url).netloc}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`. Text before a delta of kind "retry" is void, because the reply begins again.

        Raises:
            ModelUnavailable: after all retries; another model may answer.
        """
        return await reply_with_corrections(lambda asked: self._retry(asked, on_delta), request, on_delta)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self._client.close()

    async def _retry(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """Send the request until there is a reply or no retry is left."""
        policy, known = RetryPolicy(max_attempts=self._options.max_attempts), await self._known_capabilities()
        current = known
        while True:
            answer = await self._send(request, current, on_delta)
            if not isinstance(answer, Failure):
                await self._remember(known, current)
                return answer
            revised = revise_capabilities(current, answer, request, self._settings)
            if revised is not None:
                if current.images and not revised.images:
                    text = "This model does not accept images; from now on only their names are sent."
                    on_delta(Delta("note", text))
                current = revised
                continue
            delay = policy.next_delay(answer)
            if delay is None:
                raise _final_error(answer, policy.final_message(answer))
            text = f"{answer.message} Waiting {delay:.1f} s, then try {policy.attempts}."
            on_delta(Delta("retry", text, wait_s=round(delay, 3)))
            await self._options.sleep(delay)

    async def _send(
        self, request: ModelRequest, capabilities: Capabilities, on_delta: OnDelta
    ) -> AIMessage | Failure:
        offered = [str(tool["function"]["name"]) for tool in request.tools]
        reply = ReplyStream(offered, calls_are_text=not capabilities.function_calling)
        try:
            async with aclosing(self._client.payloads(await self._body(request, capabilities))) as payloads:
                async for payload in _until_ended(payloads, reply):
                    for delta in reply.add(payload):
                        on_delta(delta)
            for delta in reply.end():
                on_delta(delta)
            return reply.message()
        except (openai.APIError, ReplyError) as error:
            # The exception itself goes no further, because it holds the request, and with it the key.
            return classify_error(error, self._target)

    async def _body(self, request: ModelRequest, capabilities: Capabilities) -> bytes:
        messages = messages_with_notices(request)
        if capabilities.function_calling:
            if capabilities.images and has_images(messages):
                messages = await asyncio.to_thread(insert_images, messages, self._options.load_image)
            return self._client.request_body(messages, request.tools, capabilities)
        messages = to_prompt_protocol(messages, request.tools, self._options.format_tools)
        return self._client.request_body(messages, (), capabilities)

    async def _known_capabilities(self) -> Capabilities:
        if self._capabilities is None:
            stored = await asyncio.to_thread(self._options.capabilities.load, self._target.url, self._target.model)
            self._capabilities = apply_settings(self._settings, stored)
        return self._capabilities

    async def _remember(self, known: Capabilities, shown: Capabilities) -> None:
        """Store the capabilities with which the endpoint took a request that it had rejected before."""
        if shown != known:
            self._capabilities = shown
            await asyncio.to_thread(self._options.capabilities.save, self._target.url, self._target.model, shown)


async def _until_ended(payloads: AsyncIterator[str], reply: ReplyStream) -> AsyncIterator[str]:
    """The payloads; once the reply has ended and its stream has not, only as long as more may be expected."""
    while True:
        try:
            async with asyncio.timeout(reply.wait_s):
                payload = await anext(payloads, None)
        except TimeoutError:
            return
        except BrokenReply:
            if not reply.has_ended:
                raise
            return
        if payload is None:
            return
        yield payload


def _final_error(failure: Failure, message: str) -> ModelError:
    if failure.kind != "too_long":
        return ModelUnavailable(message) if failure.kind in TRANSIENT else ModelError(message)
    overflow = ContextOverflow(message)
    overflow.most_tokens = parse_token_limit(failure.server_message)
    return overflow


_NO_KEY = "none"
"""Sent where no key is set: the client requires one, local servers ignore it."""
_MIN_SECRET = 4
"""Shorter texts occur anywhere and are no secret."""

_STREAM_OPTIONS: Any = {
    "headers": {"Content-Type": "application/json", "X-Stainless-Raw-Response": "stream"},
    "security": {"bearer_auth": True},
}
"""Options by which the client returns a response unread, as its `with_streaming_response` does."""


class EndpointClient(ChatOpenAI):
    """The client of one endpoint and model.

    ChatOpenAI builds the request and owns the HTTP client. Its parsing of responses is not used, because it drops
    what servers other than OpenAI's send: calls without an index, reasoning, arguments that are objects.
    """

    _encoder: MessageEncoder | None = PrivateAttr(default=None)
    _envelope: "tuple[Sequence[Mapping[str, Any]], Capabilities, dict[str, Any], bytes] | None" = PrivateAttr(
        default=None
    )
    """The last request without its messages, as value and as bytes, for these tools and capabilities."""
    _stall_s: float = PrivateAttr(default=300.0)
    _connect_s: float = PrivateAttr(default=10.0)

    def request_body(
        self, messages: "Sequence[BaseMessage]", tools: Sequence[Mapping[str, Any]], capabilities: Capabilities
    ) -> bytes:
        """What is sent; the same history always gives the same bytes."""
        if self._envelope is None or self._envelope[0] is not tools or self._envelope[1] != capabilities:
            value = self._envelope_for(tools, capabilities)
            self._envelope = (tools, capabilities, value, encode_json(value))
        _, _, value, encoded = self._envelope
        if "messages" in value:
            return encoded
        self._encoder = self._encoder or MessageEncoder(self._convert)
        return encoded[:-1] + b',"messages":' + self._encoder.encode(messages, capabilities) + b"}"

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
        response = await wait_for_headers(request, self._stall_s + self._connect_s)
        try:
            content_type = str(response.headers.get("content-type", "")).lower()
            async with aclosing(raise_if_stalled(_blocks(response), self._stall_s)) as blocks:
                async for payload in iter_payloads(blocks, content_type):
                    yield payload
        finally:
            await response.close()

    async def close(self) -> None:
        """Close the connections that are kept for the next request."""
        await self.root_async_client.close()

    def _envelope_for(self, tools: Sequence[Mapping[str, Any]], capabilities: Capabilities) -> dict[str, Any]:
        options: dict[str, Any] = {"stream": capabilities.streaming}
        if capabilities.streaming and capabilities.stream_usage:
            options["stream_options"] = {"include_usage": True}
        if tools:
            options["tools"] = list(tools)
        payload = self._get_request_payload([], **options)
        extra = payload.pop("extra_body", None) or {}
        return {key: value for key, value in payload.items() if key != "messages"} | extra

    def _convert(self, messages: "Sequence[BaseMessage]", capabilities: Capabilities) -> list[dict[str, Any]]:
        converted: list[dict[str, Any]] = self._get_request_payload(list(messages))["messages"]
        for message, sent in zip(messages, converted, strict=True):
            if not capabilities.null_content:
                sent["content"] = sent.get("content") or ""
            if message.type == "ai":
                _send_back(message.response_metadata, sent, capabilities)
        return converted


def open_client(model: ModelSettings, name: str) -> EndpointClient:
    """The client for one model of the configured endpoint; it connects at the first request.

    Raises:
        ConfigError: the certificate file cannot be read.
    """
    secret = model.api_key.get_secret_value() if model.api_key else _NO_KEY

    async def key() -> str:
        return secret

    client = EndpointClient(
        model=name,
        base_url=model.endpoint,
        # As a coroutine function: with a plain key ChatOpenAI would set up a second, blocking client.
        api_key=key,
        http_async_client=_http_client(model),
        timeout=openai.Timeout(model.timeout_s, connect=model.connect_timeout_s),
        default_headers={header: value.get_secret_value() for header, value in model.headers.items()},
        extra_body=model.extra_body or None,
        # Else ChatOpenAI takes OPENAI_PROXY from the environment and rejects it beside our own client.
        openai_proxy="",
        max_retries=0,
        use_responses_api=False,
        stream_usage=False,
    )
    client._stall_s = model.timeout_s  # noqa: SLF001 -- its constructor takes fields of the request only
    client._connect_s = model.connect_timeout_s  # noqa: SLF001 -- likewise
    return client


def request_target(model: ModelSettings, name: str) -> Target:
    """Where requests for this model go, with the secrets that no message may show."""
    secrets = tuple(secret for secret in model_secrets(model) if len(secret) >= _MIN_SECRET)
    return Target(display_url(model.endpoint), name, model.api_key is not None, secrets)


def _send_back(metadata: Mapping[str, Any], sent: dict[str, Any], capabilities: Capabilities) -> None:
    """Return to the server what came beside an earlier reply, where it requires that."""
    if capabilities.needs_reasoning:
        sent["reasoning_content"] = str(metadata.get("reasoning") or "")
    calls = sent.get("tool_calls") or []
    for position, extra in (metadata.get("extra_content") or {}).items() if capabilities.needs_signatures else ():
        if int(position) < len(calls):
            calls[int(position)]["extra_content"] = extra


def _http_client(model: ModelSettings) -> openai.DefaultAsyncHttpxClient:
    """With the configured certificates, and the proxies of the environment."""
    options: dict[str, Any] = {}
    if model.ca_file is not None:
        try:
            options["verify"] = ssl.create_default_context(cafile=model.ca_file.expanduser())
        except (OSError, ssl.SSLError) as error:
            path = str(model.ca_file)
            raise ConfigError(f"model.ca_file = {path!r} cannot be read as certificates: {error}.") from error
    try:
        return openai.DefaultAsyncHttpxClient(**options)
    except (ImportError, ValueError) as error:
        reason = "SOCKS is not supported." if isinstance(error, ImportError) else str(error)
        raise ConfigError(
            f"The proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used: {reason} "
            "Set an http:// one, or name the model's host in NO_PROXY."
        ) from error
    except OSError as error:
        named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or "the system's"
        raise ConfigError(
            f"The certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({named}): {error}. "
            "Name a PEM file, or unset the variable."
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


_MAX_LISTED = 12


async def list_models(settings: Settings) -> tuple[str, ...]:
    """The names in the endpoint's model list, in its order.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    return tuple(str(entry["id"]) for entry in await list_model_entries(settings.model))


async def list_model_entries(model: ModelSettings) -> tuple[Mapping[str, Any], ...]:
    """The endpoint's model list with all fields; every entry has an `id`.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    client = open_client(model, "")
    try:
        response = await client.root_async_client.models.with_raw_response.list()
        return _parse_model_list(response.content)
    except (openai.APIError, UnknownProtocol) as error:
        failure = classify_error(error, request_target(model, ""))
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
