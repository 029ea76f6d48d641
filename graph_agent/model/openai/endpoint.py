"""The model of an endpoint: chosen at the first request, switched between requests, with fallbacks behind it.

Opening one sends no request, so that a thread can be read and resolved while its endpoint is down.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import openai

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import model_settings_for, with_model
from graph_agent.errors import ConfigError, ContextOverflow, ModelError, UsageError
from graph_agent.model.openai.capabilities import (
    Capabilities,
    CapabilityStore,
    apply_settings,
    changed_capabilities,
    revise_capabilities,
    suspect_null_content,
)
from graph_agent.model.openai.client import list_models, open_client, request_target, resolve_model_name
from graph_agent.model.openai.context_windows import parse_token_limit
from graph_agent.model.openai.early_request import EarlyRequest
from graph_agent.model.openai.errors import (
    TRANSIENT,
    BrokenReply,
    Failure,
    ModelUnavailable,
    ReplyError,
    classify_error,
)
from graph_agent.model.openai.messages import LoadImage, has_images, insert_images
from graph_agent.model.openai.prompted_tools import FormatTools, reply_with_corrections, to_prompt_protocol
from graph_agent.model.openai.refusals import LeftOut, leave_out_refused, leave_out_suspected, without_refused
from graph_agent.model.openai.stream import ReplyStream
from graph_agent.model.single_model import messages_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


__all__ = [
    "MAX_ATTEMPTS",
    "MAX_ATTEMPTS_BEFORE_FALLBACK",
    "MAX_RETRY_AFTER_S",
    "EndpointModel",
    "FallbackChain",
    "ModelOptions",
    "OpenAIModel",
    "RetryPolicy",
    "TruncationCheck",
    "format_tools_json",
    "no_image",
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
_MOST_REFUSALS = 2
"""After so many refused tools, one after the other, the next one would be refused as well."""
_REFUSES_TOOLS = 'It refuses one tool after another. Try tool_protocol = "prompt" under [model].'
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
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where the settings come from, for advice."""
    early: EarlyRequest | None = None
    """A request that was sent before the models were there."""


class OpenAIModel:
    """A `ChatModel` behind an endpoint. Close it when it is no longer needed."""

    def __init__(self, settings: ModelSettings, name: str, options: ModelOptions | None = None) -> None:
        self._settings = settings
        self._options = options or ModelOptions()
        self._target = request_target(settings, name, self._options.origins)
        self._client = open_client(settings, name, self._options.early)
        self._capabilities: Capabilities | None = None
        self._left_out = LeftOut()
        self._truncation = TruncationCheck()
        self.label = f"{self._target.model} @ {urlsplit(self._target.url).netloc}"
        """See `ChatModel.label`."""

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`. Text before a delta of kind "retry" is void, because the reply begins again.

        Raises:
            ModelUnavailable: after all retries; another model may answer.
        """
        reply = await self._retry(request, on_delta)
        if reply.tool_calls or not request.tools:
            return reply
        return await reply_with_corrections(reply, partial(self._retry, on_delta=on_delta), request, on_delta)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self._client.close()

    async def _retry(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """Send the request until there is a reply or no retry is left."""
        url, model, store = self._target.url, self._target.model, self._options.capabilities
        if self._capabilities is None:
            self._capabilities = apply_settings(self._settings, await asyncio.to_thread(store.load, url, model))
        policy = RetryPolicy(max_attempts=self._options.max_attempts)
        known = _Form(self._capabilities, self._left_out)
        current, refused = known, 0
        while True:
            answer = await self._send(request, current, on_delta)
            if not isinstance(answer, Failure):
                # With these the endpoint took a request that it had rejected before.
                self._capabilities, self._left_out = current
                if changes := changed_capabilities(known.capabilities, current.capabilities):
                    await asyncio.to_thread(store.save, url, model, changes)
                return answer
            revised = self._revise(current, answer, request, on_delta)
            if revised is not None and revised.left_out.functions != current.left_out.functions:
                refused += 1
                if refused > _MOST_REFUSALS:
                    raise ModelError(f"{answer.message} {_REFUSES_TOOLS}")
            if revised is not None:
                current = revised
                continue
            delay = policy.next_delay(answer)
            if delay is None:
                raise _final_error(answer, policy.final_message(answer))
            text = f"{answer.message} Waiting {delay:.1f} s, then try {policy.attempts}."
            on_delta(Delta("retry", text, wait_s=round(delay, 3)))
            await self._options.sleep(delay)

    def _revise(self, form: "_Form", failure: Failure, request: ModelRequest, on_delta: OnDelta) -> "_Form | None":
        """Another form of the same request, where the response says or suggests what was refused in this one."""
        capabilities = revise_capabilities(form.capabilities, failure, request, self._settings)
        if capabilities is not None:
            if form.capabilities.images and not capabilities.images:
                on_delta(Delta("note", "This model does not accept images: for a day only their names are sent."))
            return form._replace(capabilities=capabilities)
        sees = form.capabilities.images and form.capabilities.function_calling
        reduced = leave_out_refused(form.left_out, failure, request, sees=sees)
        if reduced is None:
            capabilities = suspect_null_content(form.capabilities, failure, request)
            if capabilities is not None:
                return form._replace(capabilities=capabilities)
            reduced = leave_out_suspected(form.left_out, failure, request) if sees else None
        if reduced is None:
            return None
        on_delta(Delta("note", reduced.note))
        return form._replace(left_out=reduced.left_out)

    async def _send(self, request: ModelRequest, form: "_Form", on_delta: OnDelta) -> "AIMessage | Failure":
        capabilities = form.capabilities
        messages = messages_with_notices(request) if request.notices else request.messages
        messages, tools = without_refused(messages, request.tools, form.left_out)
        if not capabilities.function_calling:
            messages, tools = to_prompt_protocol(messages, tools, self._options.format_tools), ()
        sees = capabilities.function_calling and capabilities.images and has_images(messages)
        if sees:
            messages = await asyncio.to_thread(insert_images, messages, self._options.load_image)
        body = self._client.request_body(messages, tools, capabilities, request.response_schema)
        tool_names = [str(tool["function"]["name"]) for tool in request.tools]
        reply = ReplyStream(tool_names, calls_are_text=not capabilities.function_calling)
        try:
            async with aclosing(self._client.payloads(body)) as payloads:
                async for payload in _until_ended(payloads, reply):
                    for delta in reply.add(payload):
                        on_delta(delta)
            for delta in reply.end():
                on_delta(delta)
            message = reply.message()
        except (openai.APIError, ReplyError) as error:
            # The exception itself goes no further, because it holds the request, and with it the key.
            return classify_error(error, self._target)
        if not sees and (note := self._truncation.note(len(body), message)):
            await self._learn_truncation(capabilities, note, on_delta)
        return message

    async def _learn_truncation(self, capabilities: Capabilities, note: str, on_delta: OnDelta) -> None:
        """Tell the user and remember it, for `model show` and `doctor`; until it is forgotten, say no more."""
        if capabilities.whole_requests:
            on_delta(Delta("note", note))
            store, target = self._options.capabilities, self._target
            await asyncio.to_thread(store.save, target.url, target.model, {"whole_requests": False})


class _Form(NamedTuple):
    """How a request is sent."""

    capabilities: Capabilities
    left_out: LeftOut


_SMALL_REQUEST = 24_000
"""Bytes; smaller requests fit into the context of every server."""
_SMALLEST_CONTEXT = 1_000
_MOST_BYTES_PER_TOKEN = 20
"""Text has three to five, code and tables fewer; only long runs of one character have as many."""


class TruncationCheck:
    """Detects, once, by the token counts that a server reads less than was sent."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        """Bytes and tokens of the request before."""
        self._is_noted = False

    def note(self, size: int, reply: "AIMessage") -> str:
        """What to tell the user about a request of this many bytes; empty where nothing is wrong, or again."""
        usage = reply.usage_metadata
        if not usage or not usage["input_tokens"]:
            return ""
        # Some providers do not count what they read from their cache.
        tokens = usage["input_tokens"] + (usage.get("input_token_details") or {}).get("cache_read", 0)
        last, self._last = self._last, (size, tokens)
        if tokens < _SMALLEST_CONTEXT:
            return ""  # No model reads so little: the server does not count.
        has_grown = last is not None and size > last[0] * 1.5 and tokens <= last[1] * 1.02
        if self._is_noted or size < _SMALL_REQUEST or not (has_grown or size > tokens * _MOST_BYTES_PER_TOKEN):
            return ""
        self._is_noted = True
        return (
            f"The server counted {tokens:,} tokens in a request of {size / 1000:.0f} KB: it probably drops the "
            "beginning. Raise the server's context length (Ollama: OLLAMA_CONTEXT_LENGTH), or set "
            f"context_window = {tokens} under [model]."
        )


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


class FallbackChain:
    """A `ChatModel` that asks the next model while one is unavailable.

    Each turn of the user begins with the first model again, and so does a request after a failure. Within a turn it
    stays with the same model, also for the classifier, sub-agents and summaries.
    """

    def __init__(self, models: Sequence[OpenAIModel]) -> None:
        self._models = tuple(models)
        self._current = 0

    @property
    def label(self) -> str:
        """See `ChatModel.label`; of the model in use."""
        return self._models[self._current].label

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`; the error has the messages of all models that were asked."""
        if request.starts_turn:
            self._current = 0
        failures: list[str] = []
        while True:
            try:
                return await self._models[self._current].reply(request, on_delta)
            except ModelUnavailable as failure:
                failures.append(str(failure))
                if self._current + 1 == len(self._models):
                    self._current = 0
                    raise ModelUnavailable(" ".join(failures)) from None
            except ContextOverflow:
                raise
            except ModelError as failure:
                self._current = 0
                raise ModelError(" ".join([*failures, str(failure)])) from None
            self._current += 1
            on_delta(Delta("retry", f"{failures[-1]} Asking {self.label} instead, until your next message."))

    async def close(self) -> None:
        """Close the connections that are kept open."""
        for model in self._models:
            await model.close()


LIST_TIMEOUT_S = 5.0
"""Longest wait for a list of models, which is only needed to choose from."""


class EndpointModel:
    """Implements `ChatModel` and `Models`."""

    def __init__(
        self,
        settings: Settings,
        *,
        format_tools: FormatTools = format_tools_json,
        image: LoadImage = no_image,
        list_timeout_s: float = LIST_TIMEOUT_S,
        max_attempts: int = MAX_ATTEMPTS,
        early: EarlyRequest | None = None,
    ) -> None:
        self._settings = settings
        store = CapabilityStore(capabilities_file(settings.database))
        self._options = ModelOptions(
            store,
            format_tools,
            load_image=image,
            max_attempts=max_attempts,
            origins=settings.origins,
            early=early,
        )
        self._list_timeout_s = list_timeout_s
        self._chosen_by = settings.profile or settings.model.name
        self._model = None if settings.model.name is None else self._chain(settings, settings.model.name)

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        if self._model is None:
            return f"no model chosen @ {urlsplit(display_url(self._settings.model.endpoint)).netloc}"
        return self._model.label

    @property
    def name(self) -> str | None:
        """See `Models.name`."""
        return None if self._model is None else self._chosen_by

    @property
    def chosen(self) -> Mapping[str, str]:
        """The choice, so that it can be stored and made again: profile, model name and address."""
        model = self._settings.model
        endpoint = display_url(model.endpoint)
        return {"profile": self._settings.profile, "name": model.name or "", "endpoint": endpoint}

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`; where no model is chosen yet, the endpoint's only one is used."""
        try:
            model = await self.choose_default()
        except UsageError as unclear:
            raise ModelError(str(unclear)) from None
        return await model.reply(request, on_delta)

    async def choose_default(self) -> FallbackChain:
        """The chosen model; where none is chosen, choose the endpoint's only one.

        Raises:
            UsageError: it has none or several.
            ModelError: it did not answer with a list in time.
        """
        if self._model is not None:
            return self._model
        async with self._list_timeout():
            name = await resolve_model_name(self._settings)
        return await self._use(with_model(self._settings, name), name, self._settings.profile or name)

    async def names(self) -> tuple[str, ...]:
        """See `Models.names`: the profiles, and the models of the endpoint in use."""
        profiles = tuple(self._settings.models)
        try:
            async with self._list_timeout():
                return (*profiles, *await list_models(self._settings))
        except ModelError:
            if not profiles:
                raise
            return profiles

    async def switch(self, name: str) -> None:
        """See `Models.switch`; a profile comes before a model of the endpoint.

        Raises:
            UsageError: the name is empty, or the profile names no model and its endpoint has not exactly one.
            ModelError: that endpoint did not answer with a list.
        """
        if not name.strip():
            raise UsageError("The model name is empty. List the models with `graph-agent model list`.")
        settings = with_model(self._settings, name)
        model_name = settings.model.name
        if model_name is None:
            async with self._list_timeout():
                model_name = await resolve_model_name(settings)
            settings = with_model(settings, model_name)
        await self._use(settings, model_name, name)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        if self._model is not None:
            await self._model.close()

    async def _use(self, settings: Settings, model_name: str, chosen_by: str) -> FallbackChain:
        model = self._chain(settings, model_name)
        old, self._model, self._settings, self._chosen_by = self._model, model, settings, chosen_by
        if old is not None:
            await old.close()
        return model

    def _chain(self, settings: Settings, name: str) -> FallbackChain:
        """The model of this name, followed by its fallbacks."""
        models = [(settings.model, name)]
        for fallback in settings.model.fallback:
            model = model_settings_for(settings, fallback)
            if model.name is None:
                raise ConfigError(f"model.fallback = {fallback!r}: the profile [models.{fallback}] names no model.")
            if (model.endpoint, model.name) not in [(known.endpoint, asked) for known, asked in models]:
                models.append((model, model.name))
        attempts = min(self._options.max_attempts, MAX_ATTEMPTS_BEFORE_FALLBACK)
        shorter = replace(self._options, max_attempts=attempts)
        *first, last = models
        return FallbackChain([*(OpenAIModel(*one, shorter) for one in first), OpenAIModel(*last, self._options)])

    @asynccontextmanager
    async def _list_timeout(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._list_timeout_s):
                yield
        except TimeoutError:
            raise ModelError(
                f"The list of models cannot be read: {display_url(self._settings.model.endpoint)} did not answer "
                f"within {self._list_timeout_s:g} s. Name a model with GRAPH_AGENT_MODEL or --model."
            ) from None
