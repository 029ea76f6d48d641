"""The model that the settings name, its context window, the model stored for a thread, prices and budgets."""

import asyncio
import contextlib
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from graph_agent.config.model_choice import OFFLINE_LABEL, choose_model, display_url, local_label
from graph_agent.config.paths import blob_dir
from graph_agent.config.settings import OPENAI_BASE_URL, ModelSettings, Settings
from graph_agent.config.sources import model_settings_for, with_model
from graph_agent.errors import ModelError, StorageError, UsageError
from graph_agent.model.openai.context_windows import known_context_window, parse_context_window
from graph_agent.ports import ChatModel, Models
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import Budget, Meter, Rate
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.threads import ThreadTable
from tools.description import format_declarations

__all__ = [
    "ModelWindows",
    "OpenedModel",
    "ThreadModels",
    "budget_of",
    "meter_of",
    "open_model",
    "require_price",
    "settings_for_choice",
    "store_model_choice",
]


class OpenedModel(ChatModel, Models, Protocol):
    """A model in use, which may be exchanged for another."""

    @property
    def chosen(self) -> Mapping[str, str]:
        """What to keep of the choice; empty where there was nothing to choose."""
        ...

    async def close(self) -> None:
        """End the connections that are kept open."""
        ...


async def open_model(settings: Settings, *, may_choose_later: bool, max_attempts: int | None = None) -> OpenedModel:
    """The model behind the chat-model port. An endpoint that is down is in the way of turns only.

    `most_tries` is how often an endpoint is asked for one reply, where that is to be other than in a turn.

    Raises:
        UsageError: no model is named, the endpoint has not exactly one, and nobody can be asked.
        ConfigError: a setting cannot be used.
    """
    choice = choose_model(settings)
    if choice.kind == "offline":
        await _load("graph_agent.model.offline.model")
        from graph_agent.model.offline.model import OfflineModel  # noqa: PLC0415 - no model waits for the others

        return OfflineModel(choice.obstacle)
    if settings.model.factory is not None:
        from graph_agent.app.custom_model import CustomModel  # noqa: PLC0415 - as above

        return CustomModel(
            settings.model.factory, tool_protocol=settings.model.tool_protocol, format_tools=format_declarations
        )
    if choice.kind == "local":
        await _load("graph_agent.model.local.model")
        return _local(settings.model)
    await _load("graph_agent.model.openai.endpoint")
    from graph_agent.model.openai.endpoint import EndpointModel  # noqa: PLC0415 - as above

    image = partial(_image, FileBlobs(blob_dir(settings.database)))
    tries = {} if max_attempts is None else {"max_attempts": max_attempts}
    # Its certificates alone take 20 ms to read.
    model = await asyncio.to_thread(EndpointModel, settings, format_tools=format_declarations, image=image, **tries)
    if not may_choose_later:
        try:
            with contextlib.suppress(ModelError):
                await model.choose_default()
        except BaseException:
            await model.close()
            raise
    return model


async def _load(module: str) -> None:
    """In a thread: meanwhile keys that are typed reach the screen."""
    await asyncio.to_thread(importlib.import_module, module)


def _image(blobs: FileBlobs, reference: str) -> bytes | None:
    try:
        return blobs.get(reference)
    except StorageError:
        return None


def _local(model: ModelSettings) -> OpenedModel:
    from graph_agent.model.local.model import LocalModel  # noqa: PLC0415 - as above
    from graph_agent.model.local.runtime import LOCAL_CONTEXT, shared_runtime  # noqa: PLC0415 - as above

    assert model.local is not None  # noqa: S101 - it was chosen
    path, context = model.local.expanduser(), model.context_window or LOCAL_CONTEXT
    runtime = shared_runtime(path, context)
    return LocalModel(path, runtime, context=context, commands_first=model.local_commands)


@dataclass(frozen=True, slots=True)
class ThreadModels:
    """Implements `Models` for one thread."""

    model: OpenedModel
    threads: ThreadTable
    thread_id: str

    @property
    def label(self) -> str:
        """See the port."""
        return self.model.label

    @property
    def name(self) -> str | None:
        """See the port."""
        return self.model.name

    async def names(self) -> tuple[str, ...]:
        """See the port."""
        return await self.model.names()

    async def switch(self, name: str) -> None:
        """See the port."""
        await self.model.switch(name)
        await store_model_choice(self.model, self.threads, self.thread_id)


async def store_model_choice(model: OpenedModel, threads: ThreadTable, thread_id: str) -> None:
    """Store the chosen model with the thread, which uses it whenever it is opened."""
    await threads.set_model(thread_id, model.label)
    if model.chosen:
        await threads.set_model_choice(thread_id, model.chosen)


def settings_for_choice(settings: Settings, asks: str) -> Settings | None:
    """The settings with the model that was once chosen for a thread; None where that can no longer be had."""
    choice = json.loads(asks)
    profile, name = str(choice.get("profile", "")), str(choice.get("name", ""))
    if profile and profile not in settings.models:
        return None
    chosen = with_model(settings, profile) if profile else settings
    if not chosen.model.is_configured or display_url(chosen.model.endpoint) != choice.get("endpoint"):
        return None
    return with_model(chosen, name) if name else chosen


_MATTERS = 12_000
"""A request of fewer tokens is not worth asking about; a model that takes less says so itself."""
_ASK_SECONDS = 3.0


@dataclass(slots=True)
class ModelWindows:
    """Called with the size of the next request, tells the window; see `WindowOf`."""

    settings: Settings
    models: Models
    _endpoint_windows: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """By address and name."""

    async def __call__(self, tokens: int) -> ContextWindow:
        """The window of the model that is asked next."""
        if choose_model(self.settings).kind != "endpoint":
            return ContextWindow(can_summarize=False)
        name = self.models.name
        model = self.settings.model if name is None else model_settings_for(self.settings, name)
        window = ContextWindow(reserve=model.context_reserve, compact_at=model.compact_at)
        if model.context_window is not None:
            return replace(window, tokens=model.context_window, source="set")
        name = model.name or ""
        size = await self._endpoint_window(model, name) if tokens > _MATTERS else None
        if size is not None:
            return replace(window, tokens=size, source="endpoint")
        known = known_context_window(name)
        return window if known is None else replace(window, tokens=known, source="table")

    async def _endpoint_window(self, model: ModelSettings, name: str) -> int | None:
        key = (model.endpoint, name)
        # OpenAI's own list tells no sizes.
        if key not in self._endpoint_windows and model.endpoint != OPENAI_BASE_URL:
            self._endpoint_windows[key] = await _ask(model, name)
        return self._endpoint_windows.get(key)


async def _ask(model: ModelSettings, name: str) -> int | None:
    from graph_agent.model.openai.client import list_model_entries  # noqa: PLC0415 - offline mode must not wait for it

    try:
        async with asyncio.timeout(_ASK_SECONDS):
            entries = await list_model_entries(model)
    except (ModelError, TimeoutError):
        return None
    return next((parse_context_window(entry) for entry in entries if entry["id"] == name), None)


_FREE = Rate(0, 0)
"""What answers within this process costs nothing."""


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...

    @property
    def name(self) -> str | None: ...


def meter_of(settings: Settings) -> Meter:
    """Counts with the prices of the settings."""
    rates = {name: Rate(**price.model_dump()) for name, price in settings.prices.items()}
    local = settings.model.local
    here = [OFFLINE_LABEL] if local is None else [OFFLINE_LABEL, local_label(local)]
    return Meter(rates | dict.fromkeys(here, _FREE), settings.currency)


def budget_of(settings: Settings) -> Budget:
    """What turns and threads may use."""
    return Budget(settings.max_tokens, settings.max_cost, settings.max_thread_tokens, settings.max_thread_cost)


def require_price(settings: Settings, model: _Labelled) -> None:
    """Refuse a limit on costs that could not be kept; where no model is chosen yet, requests are what is refused.

    Raises:
        UsageError: costs are limited and the price of the model, or of one that stands in for it, is unknown.
    """
    if not budget_of(settings).limits_cost or model.name is None:
        return
    prices = meter_of(settings)
    unknown = next((label for label in _asked(settings, model) if prices.price_of(label) is None), None)
    if unknown is not None:
        name = unknown.rpartition(" @ ")[0] or unknown
        raise UsageError(
            f"what {name} costs is not known, so --max-cost (max_cost, max_thread_cost) cannot be kept. Add its "
            f"price to config.toml, per million tokens in {settings.currency}: "
            f'[prices."{name}"] input = …, output = …; or leave the limit out, or limit tokens with --max-tokens'
        )


def _asked(settings: Settings, model: _Labelled) -> Iterator[str]:
    """The labels of whoever may be asked: the model, and behind an endpoint's those to fall back on."""
    yield model.label
    for spare in settings.model.fallback if choose_model(settings).kind == "endpoint" else ():
        one = model_settings_for(settings, spare)
        yield f"{one.name} @ {urlsplit(display_url(one.endpoint)).netloc}"
