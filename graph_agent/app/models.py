"""The model that the settings or a thread name, prices and budgets, and the check of a local GGUF file."""

import asyncio
import contextlib
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from graph_agent.config.model_choice import (
    OFFLINE_LABEL,
    choose_model,
    display_url,
    local_label,
    local_model_problem,
)
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import model_settings_for, with_model
from graph_agent.errors import ModelError, StorageError, UsageError
from graph_agent.ports import ChatModel, Models
from graph_agent.ports.usage import Budget, Meter, Rate
from graph_agent.storage import open_blobs
from graph_agent.storage.sqlite.row_values import load_json
from graph_agent.storage.sqlite.threads import ThreadTable
from tools.description import format_declarations

if TYPE_CHECKING:
    from graph_agent.model.local.gguf import Header, KnownModel
    from graph_agent.model.openai.early_request import EarlyRequest

__all__ = [
    "LocalFile",
    "OpenedModel",
    "ThreadModels",
    "budget_of",
    "inspect_model_file",
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


async def open_model(
    settings: Settings,
    *,
    may_choose_later: bool,
    max_attempts: int | None = None,
    early: "EarlyRequest | None" = None,
) -> OpenedModel:
    """The model behind the chat-model port. An endpoint that is down fails turns, not this.

    `max_attempts` is how often an endpoint is asked for one reply, if not as often as in a turn. `early` is a
    request to it that was sent already.

    Raises:
        UsageError: no model is named, the endpoint has not exactly one, and nobody can be asked.
        ConfigError: a setting cannot be used.
    """
    choice = choose_model(settings)
    match choice.kind:
        case "offline":
            await _load("graph_agent.model.offline.model")
            from graph_agent.model.offline.model import OfflineModel  # noqa: PLC0415 - only the model that is used

            return OfflineModel(choice.obstacle)
        case "factory":
            await _load("graph_agent.app.custom_model")
            from graph_agent.app.custom_model import CustomModel  # noqa: PLC0415 - as above

            factory, protocol = str(settings.model.factory), settings.model.tool_protocol
            return CustomModel(factory, tool_protocol=protocol, format_tools=format_declarations)
        case "local":
            return await _open_local(settings.model)
        case "endpoint":
            return await _open_endpoint(settings, max_attempts, early, may_choose_later=may_choose_later)


async def _load(module: str) -> None:
    """Load a module in a thread: meanwhile typed keys reach the screen."""
    await asyncio.to_thread(importlib.import_module, module)


async def _open_local(model: ModelSettings) -> OpenedModel:
    await _load("graph_agent.model.local.model")
    from graph_agent.model.local.model import LocalModel  # noqa: PLC0415 - as above
    from graph_agent.model.local.runtime import LOCAL_CONTEXT, shared_runtime  # noqa: PLC0415 - as above

    assert model.local is not None  # noqa: S101 - it was chosen
    path, context = model.local.expanduser(), model.context_window or LOCAL_CONTEXT
    runtime = shared_runtime(path, context)
    return LocalModel(path, runtime, context=context, commands_first=model.local_commands)


async def _open_endpoint(
    settings: Settings, max_attempts: int | None, early: "EarlyRequest | None", *, may_choose_later: bool
) -> OpenedModel:
    await _load("graph_agent.model.openai.endpoint")
    from graph_agent.model.openai.endpoint import EndpointModel  # noqa: PLC0415 - as above

    blobs = open_blobs(settings.database)

    def load_image(reference: str) -> bytes | None:
        try:
            return blobs.get(reference)
        except StorageError:
            return None

    attempts = {} if max_attempts is None else {"max_attempts": max_attempts}
    # Its certificates alone take 20 ms to read.
    model = await asyncio.to_thread(
        EndpointModel, settings, format_tools=format_declarations, image=load_image, early=early, **attempts
    )
    if not may_choose_later:
        try:
            with contextlib.suppress(ModelError):
                await model.choose_default()
        except BaseException:
            await model.close()
            raise
    return model


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


def settings_for_choice(settings: Settings, stored: str) -> Settings | None:
    """The settings with the model that is stored with a thread, as JSON; None if it is no longer available."""
    choice = load_json(stored, dict)
    profile, name = str(choice.get("profile", "")), str(choice.get("name", ""))
    if profile and profile not in settings.models:
        return None
    chosen = with_model(settings, profile) if profile else settings
    if not chosen.model.is_configured or display_url(chosen.model.endpoint) != choice.get("endpoint"):
        return None
    return with_model(chosen, name) if name else chosen


class _LabelledModel(Protocol):
    @property
    def label(self) -> str: ...

    @property
    def name(self) -> str | None: ...


def meter_of(settings: Settings) -> Meter:
    """Counts with the prices of the settings; models within this process cost nothing."""
    rates = {name: Rate(**price.model_dump()) for name, price in settings.prices.items()}
    rates[OFFLINE_LABEL] = Rate(0, 0)
    if settings.model.local is not None:
        rates[local_label(settings.model.local)] = Rate(0, 0)
    return Meter(rates, settings.currency)


def budget_of(settings: Settings) -> Budget:
    """What turns and threads may use."""
    return Budget(settings.max_tokens, settings.max_cost, settings.max_thread_tokens, settings.max_thread_cost)


def require_price(settings: Settings, model: _LabelledModel) -> None:
    """Refuse a limit on costs that could not be kept; if no model is chosen yet, requests are refused later.

    Raises:
        UsageError: costs are limited and the price of the model, or of one of its fallbacks, is unknown.
    """
    if not budget_of(settings).limits_cost or model.name is None:
        return
    labels = [model.label]
    if choose_model(settings).kind == "endpoint":
        fallbacks = [model_settings_for(settings, name) for name in settings.model.fallback]
        labels += [f"{one.name} @ {urlsplit(display_url(one.endpoint)).netloc}" for one in fallbacks]
    meter = meter_of(settings)
    unknown = next((label for label in labels if meter.price_of(label) is None), None)
    if unknown is not None:
        name = unknown.rpartition(" @ ")[0] or unknown
        raise UsageError(
            f"The price of {name} is unknown, so --max-cost (max_cost, max_thread_cost) cannot be enforced. Add "
            f"its price to config.toml, per million tokens in {settings.currency}: "
            f'[prices."{name}"] input = …, output = …; or remove the limit, or limit tokens with --max-tokens'
        )


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A model file that was checked."""

    path: Path
    bytes: int
    header: "Header"
    known: "KnownModel | None"
    """The known model that it is, byte for byte; None for any other file."""

    @property
    def label(self) -> str:
        """What the status line will call it."""
        return local_label(self.path)


def inspect_model_file(name: str) -> LocalFile:
    """Look at a file that is to be the local model.

    Raises:
        UsageError: it is not a model file, is damaged or altered, or its runtime is not installed.
    """
    from graph_agent.model.local.gguf import file_sha256, find_known_model, read_header  # noqa: PLC0415 - for this only

    path = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100 - a link stays the user's own name for it
    header = read_header(path)
    size = path.stat().st_size
    known = find_known_model(size)
    if known is not None and (digest := file_sha256(path)) != known.sha256:
        raise UsageError(
            f"{name!r} has the size of {known.name} but different content (SHA-256 {digest}, expected "
            f"{known.sha256}): it is damaged or altered. Download it again, or skip this check with "
            "`config set model.local`."
        )
    if obstacle := local_model_problem(path):
        raise UsageError(f"{name!r} cannot be used: {obstacle}. Nothing was changed.")
    return LocalFile(path, size, header, known)
