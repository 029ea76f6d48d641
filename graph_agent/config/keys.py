"""The names of the settings: which there are, which hold secrets, which one was meant.

A value with the place it was found at, and the keys of a config file. Reads nothing.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from graph_agent.config.settings import Settings

__all__ = ["SECRET_KEYS", "Sourced", "flatten_tables", "known_keys", "suggest_key"]

SECRET_KEYS = ("model.api_key", "model.headers", "web_search.api_key")
"""Keys whose values are never shown."""

_NOT_IN_FILES = (
    "database",
    "origins",
    "instructions",
    "project_tools",
    "project_skills",
    "general_model",
    "profile",
)


def known_keys() -> tuple[str, ...]:
    """Every key a config file may hold, dotted."""
    return tuple(_keys(Settings))


def suggest_key(key: str) -> str:
    """A sentence for somebody who wrote a key that does not exist."""
    if any(known.startswith(f"{key}.") for known in known_keys()):
        return f"It is a table: write a line [{key}], and its keys below that."
    close = difflib.get_close_matches(key, known_keys(), n=1) or _with_that_last_word(key)
    return f"Did you mean {close[0]!r}?" if close else "`graph-agent config show` lists all there are."


def _with_that_last_word(key: str) -> list[str]:
    last = key.rpartition(".")[2]
    words = {known.rpartition(".")[2]: known for known in known_keys()}
    return [words[word] for word in difflib.get_close_matches(last, words, n=1)]


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{prefix}{name}.")
        elif name not in _NOT_IN_FILES:
            yield f"{prefix}{name}"


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and where it stood."""

    value: Any
    origin: str


def flatten_tables(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a config file's tables."""
    sections = {key.partition(".")[0] for key in known_keys() if "." in key}
    for key, value in tables.items():
        if key in sections and isinstance(value, dict):
            yield from ((f"{key}.{inner}", item) for inner, item in value.items())
        else:
            yield key, value
