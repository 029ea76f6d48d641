"""The chat-model port over any OpenAI-compatible endpoint: asks, waits and asks again, and learns what it takes.

Knows nothing of tools beyond their declarations, and nothing of threads.

Sends one request through langchain-openai's client and hands on the answer as it stands on the wire.

ChatOpenAI builds the request and owns the client; its own reading of the answer is not used, because it drops what
servers other than OpenAI's send: calls without an index, reasoning, arguments that are objects.

How often and how long to wait before a request is made again. Knows no transport and no clock.

Which models an endpoint has, and which one is meant where none is named.
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
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore, configured, relearned
from graph_agent.model.openai.context_windows import limit_in
from graph_agent.model.openai.errors import (
    PASSING,
    BrokenReply,
    Failure,
    NotAnApi,
    Place,
    ReplyFailed,
    Unavailable,
    diagnose,
)
from graph_agent.model.openai.messages import LoadImage, has_images, with_images
from graph_agent.model.openai.prompted_tools import FormatTools, reply_with_corrections, to_prompt_protocol
from graph_agent.model.openai.request_body import EncodedMessages, encoded
from graph_agent.model.openai.stream import ReplyStream, begun_in_time, payloads_of, unless_silent
from graph_agent.model.single_model import messages_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "MAX_ATTEMPTS",
    "MAX_ATTEMPTS_BEFORE_FALLBACK",
    "MAX_RETRY_AFTER_S",
    "ModelOptions",
    "OpenAIModel",
    "RetryPolicy",
    "Wire",
    "format_tools_json",
    "list_model_entries",
    "list_models",
    "no_image",
    "open_wire",
    "place_of",
    "resolve_model_name",
]

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
    _around: "tuple[Sequence[Mapping[str, Any]], Capabilities, dict[str, Any], bytes] | None" = PrivateAttr(
        default=None
    )
    """What is beside the messages of the last request, as value and as bytes, for these tools and this dialect."""
    _silence_s: float = PrivateAttr(default=300.0)
    _connect_s: float = PrivateAttr(default=10.0)

    def request_body(
        self, messages: "Sequence[BaseMessage]", tools: Sequence[Mapping[str, Any]], dialect: Capabilities
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

    def _beside_messages(self, tools: Sequence[Mapping[str, Any]], dialect: Capabilities) -> dict[str, Any]:
        options: dict[str, Any] = {"stream": dialect.streams}
        if dialect.streams and dialect.counts_streams:
            options["stream_options"] = {"include_usage": True}
        if tools:
            options["tools"] = list(tools)
        payload = self._get_request_payload([], **options)
        extra = payload.pop("extra_body", None) or {}
        return {key: value for key, value in payload.items() if key != "messages"} | extra

    def _as_sent(self, messages: "Sequence[BaseMessage]", dialect: Capabilities) -> list[dict[str, Any]]:
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


def _send_back(kept: Mapping[str, Any], sent: dict[str, Any], dialect: Capabilities) -> None:
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


_SHOWN = 12
_NO_SECRET = 3
"""So few characters stand anywhere, and keep nothing secret."""


def place_of(model: ModelSettings, name: str) -> Place:
    """Where requests for this model go, with all that no line may show."""
    secrets = tuple(one for one in model_secrets(model) if len(one) > _NO_SECRET)
    return Place(display_url(model.endpoint), name, model.api_key is not None, secrets)


async def list_models(settings: Settings) -> tuple[str, ...]:
    """The names in the endpoint's model list, as it orders them.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    return tuple(str(entry["id"]) for entry in await list_model_entries(settings.model))


async def list_model_entries(model: ModelSettings) -> tuple[Mapping[str, Any], ...]:
    """The endpoint's model list with all that it tells of each; every entry has an `id`.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    wire = open_wire(model, "")
    try:
        answer = await wire.root_async_client.models.with_raw_response.list()
        return _entries_in(answer.content)
    except (openai.APIError, NotAnApi) as error:
        failure = diagnose(error, place_of(model, ""))
        raise ModelError(f"The list of models cannot be read. {failure.line}") from None
    finally:
        await wire.close()


def _entries_in(answer: bytes) -> tuple[Mapping[str, Any], ...]:
    """What can be used of the list; a server may send anything under this address.

    Raises:
        NotAnApi: it is no list of models.
    """
    try:
        page = json.loads(answer)
    except (ValueError, RecursionError):
        raise NotAnApi("it answered with something else than a list of models") from None
    listed = page.get("data") or () if isinstance(page, Mapping) else None
    if not isinstance(listed, list | tuple):
        raise NotAnApi("it answered with something else than a list of models")
    return tuple(entry for entry in listed if isinstance(entry, Mapping) and entry.get("id"))


async def resolve_model_name(settings: Settings) -> str:
    """The model that is named, else the only one of the endpoint.

    Raises:
        UsageError: none is named and the endpoint has none or several.
        ModelError: the endpoint did not answer with a list.
    """
    if settings.model.name is not None:
        return settings.model.name
    names = await list_models(settings)
    if len(names) == 1:
        return names[0]
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    found = f"offers {len(names)} models ({listed})" if names else "lists no models"
    raise UsageError(
        f"{display_url(settings.model.endpoint)} {found}, and none is named: set GRAPH_AGENT_MODEL, "
        "give --model NAME, or choose one in the chat with /model NAME."
    )


MAX_RETRY_AFTER_S = 60.0
"""A server that wants a longer wait is not waited for."""

_MOST = {"final": 0, "too_long": 0, "unreachable": 2, "empty": 3, "busy": 6, "broken": 6}
MAX_ATTEMPTS = _MOST["busy"] + 1
"""Requests for one reply, whatever goes wrong with them."""
MAX_ATTEMPTS_BEFORE_FALLBACK = 5
"""As many where another model can be asked instead: one that is busy is left after some eight seconds."""
_FIRST_WAIT_S = 0.5
_JITTER = 0.25


class RetryPolicy:
    """What is left of it, for one request."""

    def __init__(self, jitter: random.Random | None = None, *, max_attempts: int = MAX_ATTEMPTS) -> None:
        self.attempts = 1
        """Requests made, the running one among them."""
        self._most_tries = max_attempts
        self._by_kind: Counter[str] = Counter()
        self._jitter = jitter or random.Random()  # noqa: S311 -- spreads waits, guards nothing

    def next_delay(self, failure: Failure) -> float | None:
        """Seconds until the next try, which this counts; None: there is none."""
        self._by_kind[failure.kind] += 1
        asked = failure.retry_after_s or 0.0
        if (
            self._by_kind[failure.kind] > _MOST[failure.kind]
            or asked > MAX_RETRY_AFTER_S
            or self.attempts >= self._most_tries
        ):
            return None
        doublings = self._by_kind[failure.kind] if failure.kind == "unreachable" else self.attempts
        self.attempts += 1
        wait = _FIRST_WAIT_S * 2.0 ** (doublings - 1)
        return max(wait, asked) + wait * _JITTER * self._jitter.random()

    def final_message(self, failure: Failure) -> str:
        """The failure's line, with why it is not tried again."""
        if (failure.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
            return f"{failure.line} It asks for a wait of {failure.retry_after_s:.0f} s: try again later."
        return failure.line if self.attempts == 1 else f"{failure.line} Gave up after {self.attempts} tries."


def format_tools_json(tools: Sequence[Mapping[str, Any]]) -> str:
    """Function declarations as they are, one a line."""
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def no_image(_: str) -> bytes | None:
    """There are none."""
    return None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What models of one process have in common."""

    learned: CapabilityStore = field(default_factory=CapabilityStore)
    format_tools: FormatTools = format_tools_json
    """Writes tools out as text, for models that take them in no other way."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    image: LoadImage = no_image
    """Where the images lie that results refer to."""
    max_attempts: int = MAX_ATTEMPTS
    """How often one reply is asked for, at most."""


class OpenAIModel:
    """A `ChatModel` behind an endpoint. Close it when the process is done with it."""

    def __init__(self, settings: ModelSettings, name: str, around: ModelOptions | None = None) -> None:
        self._settings = settings
        self._around = around or ModelOptions()
        self._place = place_of(settings, name)
        self._wire: Wire = open_wire(settings, name)
        self._dialect: Capabilities | None = None

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return f"{self._place.model} @ {urlsplit(self._place.url).netloc}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`. Text shown before a delta of kind "retry" is void: the reply begins anew.

        Raises:
            Unavailable: for good as far as this model goes; another one may answer.
        """
        return await reply_with_corrections(lambda asked: self._answered(asked, on_delta), request, on_delta)

    async def close(self) -> None:
        """End the connections that are kept open."""
        await self._wire.close()

    async def _answered(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """Ask until there is an answer, patience is at its end, or it cannot get better."""
        retry_policy, known = RetryPolicy(max_attempts=self._around.max_attempts), await self._known()
        dialect = known
        while True:
            answer = await self._ask(request, dialect, on_delta)
            if not isinstance(answer, Failure):
                await self._remember(known, dialect)
                return answer
            learned = relearned(dialect, answer, request, self._settings)
            if learned is not None:
                if dialect.sees and not learned.sees:
                    on_delta(Delta("note", "This model takes no images; from now on they are named to it only."))
                dialect = learned
                continue
            wait = retry_policy.next_delay(answer)
            if wait is None:
                raise _final(answer, retry_policy.final_message(answer))
            words = f"{answer.line} Waiting {wait:.1f} s, then try {retry_policy.attempts}."
            on_delta(Delta("retry", words, wait_s=round(wait, 3)))
            await self._around.sleep(wait)

    async def _ask(self, request: ModelRequest, dialect: Capabilities, on_delta: OnDelta) -> AIMessage | Failure:
        offered = [str(tool["function"]["name"]) for tool in request.tools]
        arrival = ReplyStream(offered, calls_are_text=not dialect.calls_functions)
        try:
            async with aclosing(self._wire.payloads(await self._body(request, dialect))) as payloads:
                async for payload in _until_ended(payloads, arrival):
                    for delta in arrival.add(payload):
                        on_delta(delta)
            for delta in arrival.end():
                on_delta(delta)
            return arrival.message()
        except (openai.APIError, ReplyFailed) as error:
            # The exception itself goes no further: it holds the request, and with it the key.
            return diagnose(error, self._place)

    async def _body(self, request: ModelRequest, dialect: Capabilities) -> bytes:
        messages = messages_with_notices(request)
        if dialect.calls_functions:
            if dialect.sees and has_images(messages):
                messages = await asyncio.to_thread(with_images, messages, self._around.image)
            return self._wire.request_body(messages, request.tools, dialect)
        messages = to_prompt_protocol(messages, request.tools, self._around.format_tools)
        return self._wire.request_body(messages, (), dialect)

    async def _known(self) -> Capabilities:
        if self._dialect is None:
            learned = await asyncio.to_thread(self._around.learned.of, self._place.url, self._place.model)
            self._dialect = configured(self._settings, learned)
        return self._dialect

    async def _remember(self, known: Capabilities, shown: Capabilities) -> None:
        """Keep what the endpoint has shown by taking a request that it had refused in another form."""
        if shown != known:
            self._dialect = shown
            await asyncio.to_thread(self._around.learned.keep, self._place.url, self._place.model, shown)


async def _until_ended(payloads: AsyncIterator[str], arrival: ReplyStream) -> AsyncIterator[str]:
    """The payloads; where the reply has ended and the stream has not, only as long as more may be expected."""
    while True:
        try:
            async with asyncio.timeout(arrival.silence_s):
                payload = await anext(payloads, None)
        except TimeoutError:
            return
        except BrokenReply:
            if not arrival.has_ended:
                raise
            return
        if payload is None:
            return
        yield payload


def _final(failure: Failure, words: str) -> ModelError:
    if failure.kind != "too_long":
        return Unavailable(words) if failure.kind in PASSING else ModelError(words)
    overflow = ContextOverflow(words)
    overflow.most_tokens = limit_in(failure.said)
    return overflow
