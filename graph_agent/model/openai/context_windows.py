"""The context window of a model: from settings, its entry in a list of models, an error message, or a table.

The table has families, by the beginning of the name without its maker. A server may use a smaller
window: its list of models counts more than the table, and its error message more than both.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graph_agent.config.model_choice import choose_model
from graph_agent.config.settings import OPENAI_BASE_URL, ModelSettings, Settings
from graph_agent.config.sources import model_settings_for
from graph_agent.errors import ModelError
from graph_agent.ports import Models
from graph_agent.ports.model import ContextWindow

__all__ = ["ModelWindows", "known_context_window", "parse_context_window", "parse_token_limit"]

_KEYS = (
    "n_ctx", "loaded_context_length", "max_model_len", "context_length", "context_window", "max_context_length",
    "max_input_tokens", "input_token_limit", "inputTokenLimit", "n_ctx_train",
)  # fmt: skip
"""Names under which servers list it; the window in use comes before the largest possible one."""
_PLACES = ("meta", "limits", "top_provider", "model_info")
_MIN_TOKENS = 256
_FAMILIES = (
    ("gpt-5", 400_000), ("gpt-4.1", 1_047_576), ("gpt-4o", 128_000), ("gpt-4-turbo", 128_000), ("gpt-4", 8_192),
    ("gpt-3.5", 16_385), ("gpt-oss", 131_072), ("o1", 200_000), ("o3", 200_000), ("o4", 200_000),
    ("claude", 200_000), ("gemini", 1_048_576), ("gemma-2", 8_192), ("gemma2", 8_192), ("gemma", 131_072),
    ("deepseek", 128_000), ("qwen3-coder", 262_144), ("qwen3", 40_960), ("qwen2.5", 32_768), ("qwen", 32_768),
    ("llama-3.", 131_072), ("llama3.", 131_072), ("meta-llama-3.", 131_072), ("llama-3", 8_192), ("llama3", 8_192),
    ("meta-llama-3", 8_192), ("llama-4", 1_000_000), ("llama4", 1_000_000), ("mistral-7b", 32_768),
    ("mixtral", 32_768), ("mistral", 131_072), ("ministral", 131_072), ("devstral", 131_072),
    ("codestral", 32_768), ("kimi", 131_072), ("glm-4", 131_072), ("grok-4", 256_000), ("grok", 131_072),
    ("phi-4", 16_384), ("command-r", 128_000),
)  # fmt: skip
_LIMITS = tuple(
    re.compile(pattern)
    for pattern in (
        r"max(?:imum)? (?:[\w ]{0,40} )?(?:context|prompt|input|number)\b[\w ]{0,40}?(?:is|:|of|=|\()\s*([\d,]+)",
        r"context (?:length|window|size)[\w ]{0,30}?(?:is|of|:|=|\(|exceeds)\s*([\d,]+)",
        r">\s*([\d,]+)\s*(?:tokens?\s*)?max",
        r"n_ctx[\"' ]*[:=]\s*([\d,]+)",
        r"(?:limit|maximum)(?: is| of|:)?\s*([\d,]+) tokens",
    )
)


def known_context_window(name: str) -> int | None:
    """The window from the table; None where it does not know the family."""
    short = name.lower().rpartition("/")[2]
    return next((tokens for family, tokens in _FAMILIES if short.startswith(family)), None)


def parse_context_window(entry: Mapping[str, Any]) -> int | None:
    """The window in an entry of a list of models; None where it has none."""
    places = [entry, *(place for name in _PLACES if isinstance(place := entry.get(name), Mapping))]
    return next((tokens for key in _KEYS for place in places if (tokens := _tokens(place.get(key)))), None)


def parse_token_limit(message: str) -> int | None:
    """How many tokens a server takes, from the message with which it rejected more; None where it does not say."""
    lower = message.lower()
    digits = (found[1].replace(",", "") for pattern in _LIMITS for found in pattern.finditer(lower))
    numbers = (int(text) for text in digits if text.isdecimal())
    return min((number for number in numbers if number >= _MIN_TOKENS), default=None)


def _tokens(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value >= _MIN_TOKENS else None


_MIN_ASKED_TOKENS = 12_000
"""For a smaller request no endpoint is asked for its window; a model that takes less says so itself."""
_ASK_TIMEOUT_S = 3.0


class ModelWindows:
    """Called with the tokens of the next request, gives the context window; see `FindContextWindow`."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self._settings = settings
        self._models = models
        self._has_endpoint = choose_model(settings).kind == "endpoint"
        self._by_name: dict[str | None, ModelSettings] = {None: settings.model}
        self._endpoint_windows: dict[tuple[str, str], int | None] = {}
        """By address and name."""

    async def __call__(self, tokens: int) -> ContextWindow:
        """The window of the model that is asked next."""
        if not self._has_endpoint:
            return ContextWindow(can_summarize=False)
        wanted = self._models.name
        if wanted is not None and wanted not in self._by_name:
            self._by_name[wanted] = model_settings_for(self._settings, wanted)
        model = self._by_name[wanted]
        window = ContextWindow(reserve=model.context_reserve, compact_at=model.compact_at)
        if model.context_window is not None:
            return replace(window, tokens=model.context_window, source="set")
        name = model.name or ""
        size = await self._endpoint_window(model, name) if tokens > _MIN_ASKED_TOKENS else None
        if size is not None:
            return replace(window, tokens=size, source="endpoint")
        known = known_context_window(name)
        return window if known is None else replace(window, tokens=known, source="table")

    async def _endpoint_window(self, model: ModelSettings, name: str) -> int | None:
        key = (model.endpoint, name)
        # OpenAI's own list has no sizes.
        if key not in self._endpoint_windows and model.endpoint != OPENAI_BASE_URL:
            from graph_agent.model.openai.client import list_model_entries  # noqa: PLC0415 - loads the OpenAI library

            entries: tuple[Mapping[str, Any], ...] = ()
            with contextlib.suppress(ModelError, TimeoutError):
                async with asyncio.timeout(_ASK_TIMEOUT_S):
                    entries = await list_model_entries(model)
            sizes = (parse_context_window(entry) for entry in entries if entry["id"] == name)
            self._endpoint_windows[key] = next(sizes, None)
        return self._endpoint_windows.get(key)
