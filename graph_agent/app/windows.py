"""The window of the model in use: what is set, else what its endpoint tells, else what is known of it.

The endpoint is asked once for each model, and only when a conversation has grown so long that it matters.
"""

import asyncio
from dataclasses import dataclass, field, replace

from graph_agent.config.choice import choose_model
from graph_agent.config.model_settings import OPENAI_BASE_URL, ModelSettings
from graph_agent.config.profiles import model_named
from graph_agent.config.settings import Settings
from graph_agent.errors import ModelError
from graph_agent.model.windows import known_window, window_in
from graph_agent.ports import Models
from graph_agent.ports.window import Window

__all__ = ["ModelWindows"]

_MATTERS = 12_000
"""A request of fewer tokens is not worth asking about; a model that takes less says so itself."""
_ASK_SECONDS = 3.0


@dataclass(slots=True)
class ModelWindows:
    """Called with the size of the next request, tells the window; see `WindowOf`."""

    settings: Settings
    models: Models
    _told: dict[tuple[str, str], int | None] = field(default_factory=dict)
    """By address and name."""

    async def __call__(self, tokens: int) -> Window:
        """The window of the model that is asked next."""
        if choose_model(self.settings).kind != "endpoint":
            return Window(summarises=False)
        name = self.models.name
        model = self.settings.model if name is None else model_named(self.settings, name)
        window = Window(reserve=model.context_reserve, compact_at=model.compact_at)
        if model.context_window is not None:
            return replace(window, tokens=model.context_window, source="set")
        name = model.name or ""
        told = await self._told_by_endpoint(model, name) if tokens > _MATTERS else None
        if told is not None:
            return replace(window, tokens=told, source="endpoint")
        known = known_window(name)
        return window if known is None else replace(window, tokens=known, source="table")

    async def _told_by_endpoint(self, model: ModelSettings, name: str) -> int | None:
        key = (model.endpoint, name)
        # OpenAI's own list tells no sizes.
        if key not in self._told and model.endpoint != OPENAI_BASE_URL:
            self._told[key] = await _ask(model, name)
        return self._told.get(key)


async def _ask(model: ModelSettings, name: str) -> int | None:
    from graph_agent.model.names import listed_entries  # noqa: PLC0415 - offline mode must not wait for it

    try:
        async with asyncio.timeout(_ASK_SECONDS):
            entries = await listed_entries(model)
    except (ModelError, TimeoutError):
        return None
    return next((window_in(entry) for entry in entries if entry["id"] == name), None)
