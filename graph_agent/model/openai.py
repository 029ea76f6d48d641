"""The chat-model port over any OpenAI-compatible endpoint: asks, waits and asks again, and learns what it takes.

Knows nothing of tools beyond their declarations, and nothing of threads.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import openai
from langchain_core.messages import AIMessage

from graph_agent.config.model_settings import ModelSettings
from graph_agent.errors import ContextOverflow, ModelError
from graph_agent.model.arrival import Arrival
from graph_agent.model.correcting import until_answered
from graph_agent.model.dialect import Dialect, configured, relearned
from graph_agent.model.failures import PASSING, BrokenReply, Failure, ReplyFailed, Unavailable, diagnose
from graph_agent.model.images import LoadImage, has_images, with_images
from graph_agent.model.learned import LearnedDialects
from graph_agent.model.names import place_of
from graph_agent.model.noting import noted_messages
from graph_agent.model.patience import MOST_TRIES, Patience
from graph_agent.model.prompt_form import Rendering, in_prompt_form
from graph_agent.model.windows import limit_in
from graph_agent.model.wire import Wire, open_wire
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["OpenAIModel", "Surroundings", "as_json", "no_image"]


def as_json(tools: Sequence[Mapping[str, Any]]) -> str:
    """Function declarations as they are, one a line."""
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def no_image(_: str) -> bytes | None:
    """There are none."""
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What models of one process have in common."""

    learned: LearnedDialects = field(default_factory=LearnedDialects)
    rendered: Rendering = as_json
    """Writes tools out as text, for models that take them in no other way."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    image: LoadImage = no_image
    """Where the images lie that results refer to."""
    most_tries: int = MOST_TRIES
    """How often one reply is asked for, at most."""


class OpenAIModel:
    """A `ChatModel` behind an endpoint. Close it when the process is done with it."""

    def __init__(self, settings: ModelSettings, name: str, around: Surroundings | None = None) -> None:
        self._settings = settings
        self._around = around or Surroundings()
        self._place = place_of(settings, name)
        self._wire: Wire = open_wire(settings, name)
        self._dialect: Dialect | None = None

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        return f"{self._place.model} @ {urlsplit(self._place.url).netloc}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`. Text shown before a delta of kind "retry" is void: the reply begins anew.

        Raises:
            Unavailable: for good as far as this model goes; another one may answer.
        """
        return await until_answered(lambda asked: self._answered(asked, on_delta), request, on_delta)

    async def close(self) -> None:
        """End the connections that are kept open."""
        await self._wire.close()

    async def _answered(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """Ask until there is an answer, patience is at its end, or it cannot get better."""
        patience, known = Patience(most_tries=self._around.most_tries), await self._known()
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
            wait = patience.wait_after(answer)
            if wait is None:
                raise _final(answer, patience.last_words(answer))
            words = f"{answer.line} Waiting {wait:.1f} s, then try {patience.tries}."
            on_delta(Delta("retry", words, wait_s=round(wait, 3)))
            await self._around.sleep(wait)

    async def _ask(self, request: ModelRequest, dialect: Dialect, on_delta: OnDelta) -> AIMessage | Failure:
        offered = [str(tool["function"]["name"]) for tool in request.tools]
        arrival = Arrival(offered, calls_are_text=not dialect.calls_functions)
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

    async def _body(self, request: ModelRequest, dialect: Dialect) -> bytes:
        messages = noted_messages(request)
        if dialect.calls_functions:
            if dialect.sees and has_images(messages):
                messages = await asyncio.to_thread(with_images, messages, self._around.image)
            return self._wire.request_body(messages, request.tools, dialect)
        messages = in_prompt_form(messages, request.tools, self._around.rendered)
        return self._wire.request_body(messages, (), dialect)

    async def _known(self) -> Dialect:
        if self._dialect is None:
            learned = await asyncio.to_thread(self._around.learned.of, self._place.url, self._place.model)
            self._dialect = configured(self._settings, learned)
        return self._dialect

    async def _remember(self, known: Dialect, shown: Dialect) -> None:
        """Keep what the endpoint has shown by taking a request that it had refused in another form."""
        if shown != known:
            self._dialect = shown
            await asyncio.to_thread(self._around.learned.keep, self._place.url, self._place.model, shown)


async def _until_ended(payloads: AsyncIterator[str], arrival: Arrival) -> AsyncIterator[str]:
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
