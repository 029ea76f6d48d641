"""The chat-model port over any OpenAI-compatible endpoint: asks, waits and asks again, and learns what it takes.

Knows nothing of tools beyond their declarations, and nothing of threads.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from urllib.parse import urlsplit

import openai
from langchain_core.messages import AIMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ModelError
from graph_agent.model.arrival import Arrival
from graph_agent.model.failures import Failure, ReplyFailed, diagnose
from graph_agent.model.names import place_of
from graph_agent.model.patience import Patience
from graph_agent.model.wire import Dialect, Wire, open_wire
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["OpenAIModel"]

_MAY_MEAN_DIALECT = frozenset((400, 422, 500, 501))
_ABOUT_STREAMS = re.compile(
    r"\b(?:cannot|can't|not|unable|unsupported|without)\b.*\bstream|\bstream(?:ing|ed)?\b.*\b(?:not|unsupported|disabled|false)\b",
    re.DOTALL,
)
_ABOUT_COUNTS = re.compile(r"stream_options|include_usage")


class OpenAIModel:
    """A `ChatModel` behind an endpoint. Close it when the process is done with it."""

    def __init__(
        self,
        settings: ModelSettings,
        name: str,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._place = place_of(settings, name)
        self._wire: Wire = open_wire(settings, name)
        self._dialect = Dialect(streams=settings.stream != "off")
        self._sleep = sleep

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return f"{self._place.model} @ {urlsplit(self._place.url).netloc}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`. Text shown before a delta of kind "retry" is void: the reply begins anew."""
        patience, dialect = Patience(), self._dialect
        while True:
            answer = await self._ask(request, dialect, on_delta)
            if not isinstance(answer, Failure):
                self._dialect = dialect
                return answer
            learned = self._relearn(dialect, answer, request)
            if learned is not None:
                dialect = learned
                continue
            wait = patience.wait_after(answer)
            if wait is None:
                raise ModelError(patience.last_words(answer))
            on_delta(Delta("retry", f"{answer.line} Waiting {wait:.1f} s, then try {patience.tries}."))
            await self._sleep(wait)

    async def close(self) -> None:
        """End the connections that are kept open."""
        await self._wire.close()

    async def _ask(self, request: ModelRequest, dialect: Dialect, on_delta: OnDelta) -> AIMessage | Failure:
        body = self._wire.request_body(request.messages, request.tools, dialect)
        arrival = Arrival()
        try:
            async with aclosing(self._wire.payloads(body)) as payloads:
                async for payload in payloads:
                    for delta in arrival.add(payload):
                        on_delta(delta)
            for delta in arrival.end():
                on_delta(delta)
            return arrival.message(request.tools)
        except (openai.APIError, ReplyFailed) as error:
            # The exception itself goes no further: it holds the request, and with it the key.
            return diagnose(error, self._place)

    def _relearn(self, dialect: Dialect, failure: Failure, request: ModelRequest) -> Dialect | None:
        """A dialect that the endpoint may take where it refused this one; None: it refused something else."""
        if failure.status not in _MAY_MEAN_DIALECT or failure.kind == "too_long":
            return None
        if dialect.streams and dialect.counts_streams and _ABOUT_COUNTS.search(failure.said):
            return replace(dialect, counts_streams=False)
        if dialect.streams and self._settings.stream == "auto" and _ABOUT_STREAMS.search(failure.said):
            return replace(dialect, streams=False)
        if dialect.takes_null and failure.kind == "final" and _has_bare_calls(request):
            return replace(dialect, takes_null=False)
        return None


def _has_bare_calls(request: ModelRequest) -> bool:
    replies = [message for message in request.messages if isinstance(message, AIMessage)]
    return any(reply.tool_calls and not reply.text for reply in replies)
