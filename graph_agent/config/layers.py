"""Where settings come from, strongest first: flag, environment, the project's config.toml, the user's.

A project says something only as far as the user trusted its folder, and never more than `tightening` lets through.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graph_agent.config.found import Found
from graph_agent.config.keys import known_keys, meant_key
from graph_agent.config.paths import config_dir
from graph_agent.config.plain import plain_text
from graph_agent.config.project import Project
from graph_agent.config.tightening import Ignored, project_settings, read_tables
from graph_agent.errors import ConfigError

__all__ = ["ENVIRONMENT", "FLAGS", "Layer", "config_file", "read_layers", "refuse_bypass"]

ENVIRONMENT: tuple[tuple[str, str], ...] = (
    ("OPENAI_BASE_URL", "model.base_url"),
    ("GRAPH_AGENT_BASE_URL", "model.base_url"),
    ("OPENAI_API_KEY", "model.api_key"),
    ("GRAPH_AGENT_MODEL", "model.name"),
    ("GRAPH_AGENT_LOCAL_MODEL", "model.local"),
    ("GRAPH_AGENT_MODE", "mode"),
)
"""Variable and the key it sets; a later line beats an earlier one for the same key. Empty values count as unset."""

FLAGS: Mapping[str, str] = {
    "model.name": "--model",
    "model.stream": "--no-stream",
    "mode": "--mode",
    "max_steps": "--max-steps",
    "max_tokens": "--max-tokens",
    "max_cost": "--max-cost",
    "database": "--db",
}
"""Keys that flags set, with the flag as the user wrote it."""

_FLAG_ONLY_MODE = "bypassPermissions"


@dataclass(frozen=True, slots=True)
class Layer:
    """All that one source sets."""

    name: Literal["flag", "env", "project", "user"]
    values: Mapping[str, Found]
    """By dotted key; of a project, what is added to the user's stands here without it."""
    ignored: Mapping[str, Ignored] = field(default_factory=dict)
    """What a project says in vain."""


def config_file(env: Mapping[str, str]) -> Path:
    """The user's own config file, whether it is there or not."""
    return config_dir(env) / "config.toml"


def read_layers(
    env: Mapping[str, str], flags: Mapping[str, Any], project: Project | None = None, user_text: str | None = None
) -> tuple[Layer, ...]:
    """The layers, strongest first. Keys are known; values are not checked, but for the mode no file may set.

    With `user_text` the user's file is taken to say that.

    Raises:
        ConfigError: a file that counts cannot be read, or the user's names a key that does not exist.
    """
    given = {key: Found(value, f"flag {FLAGS.get(key, key)}") for key, value in flags.items() if value is not None}
    environment = {key: Found(env[name], name) for name, key in ENVIRONMENT if env.get(name)}
    path = config_file(env)
    user = _from_file(path) if user_text is None else _said(user_text, path)
    for layer in (environment, user):
        refuse_bypass(layer.get("mode"))
    return (Layer("flag", given), Layer("env", environment), *_of(project, user), Layer("user", user))


def _of(project: Project | None, user: Mapping[str, Found]) -> tuple[Layer, ...]:
    if project is None:
        return ()
    said = project_settings(project, user)
    return (Layer("project", said.counting, said.ignored),)


def refuse_bypass(mode: Found | None) -> None:
    """Let no file and no variable take all questions away.

    Raises:
        ConfigError: this value does.
    """
    if mode is not None and mode.value == _FLAG_ONLY_MODE:
        raise ConfigError(
            f"{mode.origin}: mode = {_FLAG_ONLY_MODE!r} is never taken from a file or the environment; "
            f"give --mode {_FLAG_ONLY_MODE} on the command line for the one run that needs it."
        )


def _from_file(path: Path) -> dict[str, Found]:
    try:
        text = plain_text(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}. Correct it or move it away."
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}. Correct it or move it away.") from error
    return _said(text, path)


def _said(text: str, path: Path) -> dict[str, Found]:
    found = {key: Found(value, str(path)) for key, value in read_tables(text, str(path)).items()}
    for key in found:
        if key not in known_keys():
            raise ConfigError(f"{path}: unknown key {key!r}. {meant_key(key)}")
    return found
