"""The model of an endpoint that is chosen late and may be exchanged between two requests.

Opening one asks nobody: a thread can be looked at, settled and answered while its endpoint is down.

Several models in a row: the next is asked while one cannot answer. Knows no endpoint and no setting.
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
from graph_agent.model.openai.errors import Unavailable
from graph_agent.model.openai.messages import LoadImage
from graph_agent.model.openai.prompted_tools import FormatTools
from graph_agent.ports import Delta, ModelRequest, OnDelta

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


__all__ = ["EndpointModel", "ModelRow"]


class ModelRow:
    """A `ChatModel`; each turn of the user begins with the first model again, and so does what follows a failure.

    Within a turn it stays where it is, whoever asks: the judge, a sub-agent, who writes a summary.
    """

    def __init__(self, models: Sequence[OpenAIModel]) -> None:
        self._models = tuple(models)
        self._place = 0

    @property
    def label(self) -> str:
        """See `ChatModel.label`; of the one that is asked now."""
        return self._models[self._place].label

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`; what each that was asked in vain said is told, and in the end all of it."""
        if request.starts_turn:
            self._place = 0
        failures: list[str] = []
        while True:
            try:
                return await self._models[self._place].reply(request, on_delta)
            except Unavailable as failure:
                failures.append(str(failure))
                if self._place + 1 == len(self._models):
                    self._place = 0
                    raise Unavailable(" ".join(failures)) from None
            except ContextOverflow:
                raise
            except ModelError as failure:
                self._place = 0
                raise ModelError(" ".join([*failures, str(failure)])) from None
            self._place += 1
            on_delta(Delta("retry", f"{failures[-1]} Asking {self.label} instead, until your next message."))

    async def close(self) -> None:
        """End the connections that are kept open."""
        for model in self._models:
            await model.close()


LIST_SECONDS = 5.0
"""Longest wait for a list of models; it is only needed to choose from."""


class EndpointModel:
    """Implements `ChatModel` and `Models`."""

    def __init__(
        self,
        settings: Settings,
        *,
        format_tools: FormatTools = format_tools_json,
        image: LoadImage = no_image,
        list_seconds: float = LIST_SECONDS,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        self._settings = settings
        learned = CapabilityStore(capabilities_file(settings.database))
        self._around = ModelOptions(learned, format_tools, image=image, max_attempts=max_attempts)
        self._list_seconds = list_seconds
        self._chosen_by = settings.profile or settings.model.name
        self._model = None if settings.model.name is None else self._row(settings, settings.model.name)

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
        """The choice as it can be kept and made again: the profile, the model's name, the address it was at."""
        model = self._settings.model
        return {
            "profile": self._settings.profile,
            "name": model.name or "",
            "endpoint": display_url(model.endpoint),
        }

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> "AIMessage":
        """See `ChatModel.reply`; where no model is chosen yet, the endpoint's only one is taken."""
        try:
            await self.choose_default()
        except UsageError as unclear:
            raise ModelError(str(unclear)) from None
        assert self._model is not None  # noqa: S101 - chosen just now
        return await self._model.reply(request, on_delta)

    async def choose_default(self) -> None:
        """Take the endpoint's only model, where none is chosen yet.

        Raises:
            UsageError: it has none or several.
            ModelError: it did not answer with a list in time.
        """
        if self._model is None:
            async with self._in_time():
                name = await resolve_model_name(self._settings)
            await self._take(with_model(self._settings, name), self._settings.profile or name)

    async def names(self) -> tuple[str, ...]:
        """See `Models.names`: the profiles, and the models of the endpoint in use."""
        profiles = tuple(self._settings.models)
        try:
            async with self._in_time():
                return (*profiles, *await list_models(self._settings))
        except ModelError:
            if not profiles:
                raise
            return profiles

    async def switch(self, name: str) -> None:
        """See `Models.switch`; a profile goes before a model of the endpoint.

        Raises:
            UsageError: the name is empty, or the profile names no model and its endpoint has not exactly one.
            ModelError: that endpoint did not answer with a list.
        """
        if not name.strip():
            raise UsageError("No model has an empty name; `graph-agent model list` lists those there are.")
        settings = with_model(self._settings, name)
        if settings.model.name is None:
            async with self._in_time():
                settings = with_model(settings, await resolve_model_name(settings))
        await self._take(settings, name)

    async def close(self) -> None:
        """End the connections that are kept open."""
        if self._model is not None:
            await self._model.close()

    async def _take(self, settings: Settings, name: str) -> None:
        """Ask the model of these settings, chosen by a name."""
        assert settings.model.name is not None  # noqa: S101 - resolved by whoever calls
        row = self._row(settings, settings.model.name)
        old, self._model, self._settings, self._chosen_by = self._model, row, settings, name
        if old is not None:
            await old.close()

    def _row(self, settings: Settings, name: str) -> ModelRow:
        """The model of this name, and behind it those to fall back on."""
        first = settings.model
        ways = [(first, name)]
        for spare in first.fallback:
            model = model_settings_for(settings, spare)
            if model.name is None:
                raise ConfigError(f"model.fallback = {spare!r}: the profile [models.{spare}] names no model.")
            if (model.endpoint, model.name) not in [(known.endpoint, asked) for known, asked in ways]:
                ways.append((model, model.name))
        tries = min(self._around.max_attempts, MAX_ATTEMPTS_BEFORE_FALLBACK)
        around = [*[replace(self._around, max_attempts=tries)] * (len(ways) - 1), self._around]
        return ModelRow([OpenAIModel(*way, here) for way, here in zip(ways, around, strict=True)])

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._list_seconds):
                yield
        except TimeoutError:
            raise ModelError(
                f"The list of models cannot be read. {display_url(self._settings.model.endpoint)} did not answer "
                f"within {self._list_seconds:g} s; GRAPH_AGENT_MODEL or --model names a model without that list."
            ) from None
