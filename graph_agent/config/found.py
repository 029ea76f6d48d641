"""A value with the place it was found at, and the keys of a config file. Reads nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graph_agent.config.keys import known_keys

__all__ = ["Found", "flattened"]


@dataclass(frozen=True, slots=True)
class Found:
    """A value and where it stood."""

    value: Any
    origin: str


def flattened(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a config file's tables."""
    sections = {key.partition(".")[0] for key in known_keys() if "." in key}
    for key, value in tables.items():
        if key in sections and isinstance(value, dict):
            yield from ((f"{key}.{inner}", item) for inner, item in value.items())
        else:
            yield key, value
