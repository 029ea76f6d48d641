"""Opens the model that the settings name, and notes with the thread when another one is chosen."""

import asyncio
import contextlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from graph_agent.config.choice import choose_model, shown_url
from graph_agent.config.model_settings import ModelSettings
from graph_agent.config.paths import blob_dir
from graph_agent.config.profiles import with_model
from graph_agent.config.settings import Settings
from graph_agent.errors import ModelError, StorageError
from graph_agent.ports import ChatModel, Models
from graph_agent.store.blobs import FileBlobs
from graph_agent.store.threads import ThreadTable
from tools.prompt_text import as_prompt_text

__all__ = ["NotedModels", "OpenedModel", "as_chosen", "note_model", "open_model"]


class OpenedModel(ChatModel, Models, Protocol):
    """A model in use, which may be exchanged for another."""

    @property
    def chosen(self) -> Mapping[str, str]:
        """What to keep of the choice; empty where there was nothing to choose."""
        ...

    async def close(self) -> None:
        """End the connections that are kept open."""
        ...


async def open_model(settings: Settings, *, may_choose_later: bool, most_tries: int | None = None) -> OpenedModel:
    """The model behind the chat-model port. An endpoint that is down is in the way of turns only.

    `most_tries` is how often an endpoint is asked for one reply, where that is to be other than in a turn.

    Raises:
        UsageError: no model is named, the endpoint has not exactly one, and nobody can be asked.
        ConfigError: a setting cannot be used.
    """
    choice = choose_model(settings)
    if choice.kind == "offline":
        await _load("graph_agent.model.offline")
        from graph_agent.model.offline import OfflineModel  # noqa: PLC0415 - no model waits for the others

        return OfflineModel(choice.obstacle)
    if settings.model.factory is not None:
        from graph_agent.app.made_model import MadeModel  # noqa: PLC0415 - as above

        return MadeModel(
            settings.model.factory, tool_protocol=settings.model.tool_protocol, rendered=as_prompt_text
        )
    if choice.kind == "local":
        await _load("graph_agent.model.local")
        return _local(settings.model)
    await _load("graph_agent.model.endpoint")
    from graph_agent.model.endpoint import EndpointModel  # noqa: PLC0415 - as above

    image = partial(_image, FileBlobs(blob_dir(settings.database)))
    tries = {} if most_tries is None else {"most_tries": most_tries}
    # Its certificates alone take 20 ms to read.
    model = await asyncio.to_thread(EndpointModel, settings, rendered=as_prompt_text, image=image, **tries)
    if not may_choose_later:
        try:
            with contextlib.suppress(ModelError):
                await model.choose_only()
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
    from graph_agent.model.local import LocalModel  # noqa: PLC0415 - as above
    from graph_agent.model.local_runtime import LOCAL_CONTEXT, shared_runtime  # noqa: PLC0415 - as above

    assert model.local is not None  # noqa: S101 - it was chosen
    path, context = model.local.expanduser(), model.context_window or LOCAL_CONTEXT
    runtime = shared_runtime(path, context)
    return LocalModel(path, runtime, context=context, commands_first=model.local_commands)


@dataclass(frozen=True, slots=True)
class NotedModels:
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
        await note_model(self.model, self.threads, self.thread_id)


async def note_model(model: OpenedModel, threads: ThreadTable, thread_id: str) -> None:
    """Keep the choice of a model for a thread: it goes on with it whenever it is opened."""
    await threads.set_model(thread_id, model.label)
    if model.chosen:
        await threads.set_choice(thread_id, model.chosen)


def as_chosen(settings: Settings, asks: str) -> Settings | None:
    """The settings with the model that was once chosen for a thread; None where that can no longer be had."""
    choice = json.loads(asks)
    profile, name = str(choice.get("profile", "")), str(choice.get("name", ""))
    if profile and profile not in settings.models:
        return None
    chosen = with_model(settings, profile) if profile else settings
    if not chosen.model.is_configured or shown_url(chosen.model.endpoint) != choice.get("endpoint"):
        return None
    return with_model(chosen, name) if name else chosen
