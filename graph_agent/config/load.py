"""Reads the settings: flag over environment over the user's config.toml over the default.

A project's own `.graph-agent/config.toml` is not read: a folder somebody else wrote must not change what the agent
may do or whom it talks to before the user trusted it.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from graph_agent.config.paths import config_dir, database_path
from graph_agent.config.settings import Settings
from graph_agent.errors import ConfigError

__all__ = ["ENVIRONMENT", "FLAGS", "known_keys", "load_settings"]

ENVIRONMENT: tuple[tuple[str, str], ...] = (
    ("OPENAI_BASE_URL", "model.base_url"),
    ("GRAPH_AGENT_BASE_URL", "model.base_url"),
    ("OPENAI_API_KEY", "model.api_key"),
    ("GRAPH_AGENT_MODEL", "model.name"),
    ("GRAPH_AGENT_MODE", "mode"),
)
"""Variable and the key it sets; a later line beats an earlier one for the same key. Empty values count as unset."""

FLAGS: Mapping[str, str] = {
    "model.name": "--model",
    "model.stream": "--no-stream",
    "mode": "--mode",
    "max_steps": "--max-steps",
    "database": "--db",
}
"""Keys that flags set, with the flag as the user wrote it."""

_SECRET = ("model.api_key", "model.headers")
_NOT_IN_FILES = ("database", "origins")
_FLAG_ONLY_MODE = "bypassPermissions"


@dataclass(frozen=True, slots=True)
class _Found:
    value: Any
    origin: str


def load_settings(env: Mapping[str, str], *, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process.

    Args:
        env: the environment; also says where the config file lies.
        flags: values by dotted key, those of `FLAGS`; None is "not given".

    Raises:
        ConfigError: a value is wrong or a key unknown; the message names where it stands and what is expected.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    found: dict[str, _Found] = {}
    found.update(_from_file(config_dir(env) / "config.toml"))
    found.update({key: _Found(env[name], name) for name, key in ENVIRONMENT if env.get(name)})
    _refuse_bypass(found.get("mode"))
    found.update({key: _Found(value, f"flag {FLAGS.get(key, key)}") for key, value in given.items()})
    found["database"] = _Found(
        database_path(env, given.get("database")), found.get("database", _Found("", "")).origin
    )
    return _validated(found)


def known_keys() -> tuple[str, ...]:
    """Every key a config file may hold, dotted."""
    return tuple(_keys(Settings))


def _from_file(path: Path) -> dict[str, _Found]:
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}. Correct it or move it away.") from error
    found = {key: _Found(value, str(path)) for key, value in _flatten(tables)}
    for key in found:
        if key not in known_keys():
            raise ConfigError(f"{path}: unknown key {key!r}.{_near(key)}")
    return found


def _flatten(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    sections = {key.partition(".")[0] for key in known_keys() if "." in key}
    for key, value in tables.items():
        if key in sections and isinstance(value, dict):
            yield from ((f"{key}.{inner}", item) for inner, item in value.items())
        else:
            yield key, value


def _near(key: str) -> str:
    close = difflib.get_close_matches(key, known_keys(), n=1) or _with_that_last_word(key)
    return f" Did you mean {close[0]!r}?" if close else f" Known keys: {', '.join(known_keys())}."


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


def _refuse_bypass(mode: _Found | None) -> None:
    if mode is not None and mode.value == _FLAG_ONLY_MODE:
        raise ConfigError(
            f"{mode.origin}: mode = {_FLAG_ONLY_MODE!r} is never taken from a file or the environment; "
            f"give --mode {_FLAG_ONLY_MODE} on the command line for the one run that needs it."
        )


def _validated(found: Mapping[str, _Found]) -> Settings:
    nested: dict[str, Any] = {"origins": {key: item.origin for key, item in found.items() if item.origin}}
    for key, item in found.items():
        section, _, name = key.rpartition(".")
        target = nested.setdefault(section, {}) if section else nested
        target[name] = item.value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        raise ConfigError(_complaint(error, found)) from None


def _complaint(error: ValidationError, found: Mapping[str, _Found]) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    key = ".".join(place[:2]) if ".".join(place[:2]) in found else place[0]
    item = found.get(key, _Found(first["input"], "settings"))
    shown = "(hidden)" if key in _SECRET else repr(item.value)
    return f"{item.origin}: {key} = {shown}: {first['msg'].removeprefix('Value error, ')}."
