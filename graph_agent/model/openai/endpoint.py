"""The model of an endpoint: chosen at the first request, switched between requests, with fallbacks behind it.

Opening one sends no request, so that a thread can be read and resolved while its endpoint is down.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import Settings
from graph_agent.config.sources import model_settings_for, with_model
from graph_agent.errors import ConfigError, ContextOverflow, ModelError, UsageError
from graph_agent.model.openai.capabilities import CapabilityStore
from graph_agent.model.openai.client import (
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_BEFORE_FALLBACK,
    ModelOptions,
    OpenAIModel,
    format_tools_json,
    list_models,
    no_image,
    resolve_model_name,
)
from graph_agent.model.openai.errors import ModelUnavailable
from graph_agent.model.openai.messages import LoadImage
from graph_agent.model.openai.prompted_tools import FormatTools
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


__all__ = ["EndpointModel", "FallbackChain"]


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
    ) -> None:
        self._settings = settings
        store = CapabilityStore(capabilities_file(settings.database))
        self._options = ModelOptions(store, format_tools, load_image=image, max_attempts=max_attempts)
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
