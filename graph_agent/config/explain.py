"""Says of each setting what it is, where it comes from and what else was said about it. Secrets are never shown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.config.keys import SECRET_KEYS, Sourced, known_keys, suggest_key
from graph_agent.config.model_choice import display_address, display_url
from graph_agent.config.paths import database_path
from graph_agent.config.project import Project
from graph_agent.config.settings import Settings
from graph_agent.config.sources import (
    ADDITIVE_KEYS,
    ENVIRONMENT,
    FLAGS,
    Layer,
    config_file,
    load_settings,
    merge_project,
    read_layers,
)
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = ["Explanation", "LayerValue", "describe_type", "explain", "explain_all"]

DATABASE = "database"
"""Shown beside the keys of the file, though only a flag or the environment sets it."""


@dataclass(frozen=True, slots=True)
class LayerValue:
    """What one layer says about a key."""

    layer: str
    """flag, env, project, user or default."""
    place: str
    """The variable, the file, or what could be used to say something here."""
    value: Any
    """JSON value to show; None where the layer is silent."""
    speaks: bool
    ignored: str = ""
    """Why the value does not count; empty where it does, or there is none."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One setting, with everything that was said about it."""

    key: str
    value: Any
    """JSON value to show."""
    layer: str
    """The layer that won."""
    origin: str
    """Where in it the value stands; empty for a default."""
    description: str
    allowed: str
    layers: tuple[LayerValue, ...]
    """Strongest first. What a project adds to a list or table of the user's joins it, and both speak."""


def explain_all(
    env: Mapping[str, str], project: Project | None = None, database: str | None = None
) -> tuple[Explanation, ...]:
    """Every setting of this process, the database last; `database` is that of a flag.

    Raises:
        ConfigError: a value is wrong or a key unknown.
    """
    load_settings(env, project=project)
    layers = read_layers(env, {}, project)
    return (*(_explained(key, layers, _places(env, project)) for key in known_keys()), _database(env, database))


def explain(
    key: str, env: Mapping[str, str], project: Project | None = None, database: str | None = None
) -> Explanation:
    """One setting.

    Raises:
        UsageError: there is no such key.
        ConfigError: a value is wrong or a key unknown.
    """
    for found in explain_all(env, project, database):
        if found.key == key:
            return found
    raise UsageError(f"there is no setting {key!r}. {suggest_key(key)}")


def _places(env: Mapping[str, str], project: Project | None) -> Mapping[str, str]:
    own = str(project.config_path) if project else ""
    return {"user": str(config_file(env)), "project": own}


def _explained(key: str, layers: tuple[Layer, ...], places: Mapping[str, str]) -> Explanation:
    field = _field(key)
    default = None if field.default is None else _plain(field.default)
    said = (
        *(_said(key, layer, places) for layer in layers),
        LayerValue("default", "", default, speaks=True),
    )
    winner = next(one for one in said if one.speaks)
    origin = winner.place if winner.layer != "default" else ""
    value = _together(key, layers) if key in ADDITIVE_KEYS and winner.layer == "project" else winner.value
    return Explanation(key, value, winner.layer, origin, field.description or "", describe_type(key), tuple(said))


def _together(key: str, layers: tuple[Layer, ...]) -> Any:
    project, user = layers[-2:]
    return _shown(key, merge_project(user.values, project.values)[key])


def _said(key: str, layer: Layer, places: Mapping[str, str]) -> LayerValue:
    found = layer.values.get(key)
    if found is not None:
        return LayerValue(layer.name, found.origin, _shown(key, found), speaks=True)
    variables = [name for name, sets in reversed(ENVIRONMENT) if sets == key]
    place = {"flag": FLAGS.get(key, ""), "env": ", ".join(variables), **places}[layer.name]
    vain = layer.ignored.get(key) or layer.ignored.get("*")
    if vain is not None:
        return LayerValue(
            layer.name, place, _shown(key, Sourced(vain.value, place)), speaks=False, ignored=vain.reason
        )
    return LayerValue(layer.name, place, None, speaks=False)


def _shown(key: str, found: Sourced) -> Any:
    if key in SECRET_KEYS:
        source = f"env {found.origin}" if found.origin.isupper() else found.origin
        names = f" ({', '.join(found.value)})" if isinstance(found.value, dict) else ""
        return f"set{names or f' ({source})'}"
    if key in ("mcp_servers", "models") and isinstance(found.value, dict):
        return {name: _without_values(entry) for name, entry in found.value.items()}
    return display_url(str(found.value)) if key == "model.base_url" else _plain(found.value)


def _without_values(entry: Any) -> Any:
    """A server's or model's table without its secrets: of variables and headers their names alone."""
    return {key: _without_secret(key, value) for key, value in entry.items()} if isinstance(entry, dict) else entry


def _without_secret(key: str, value: Any) -> Any:
    match key:
        case "env" | "headers":
            return sorted(value) if isinstance(value, dict) else "set"
        case "api_key":
            return "set"
        case "url" | "base_url":
            return display_address(str(value))
    return value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _database(env: Mapping[str, str], flag: str | None) -> Explanation:
    own = str(database_path({**env, "GRAPH_AGENT_DB": ""}))
    places = {"flag": (FLAGS[DATABASE], flag), "env": ("GRAPH_AGENT_DB", env.get("GRAPH_AGENT_DB"))}
    said = (
        *(
            LayerValue(layer, place, str(database_path({}, named)) if named else None, speaks=bool(named))
            for layer, (place, named) in places.items()
        ),
        LayerValue("default", "", own, speaks=True),
    )
    winner = next(one for one in said if one.speaks)
    description = Settings.model_fields[DATABASE].description or ""
    return Explanation(DATABASE, winner.value, winner.layer, winner.place, description, "a file", said)


def _field(key: str) -> "FieldInfo":
    owner: type[BaseModel] = Settings
    *sections, name = key.split(".")
    for section in sections:
        inner = owner.model_fields[section].annotation
        assert isinstance(inner, type)  # noqa: S101 - known_keys made the key out of these very models
        owner = inner
    return owner.model_fields[name]


def describe_type(key: str) -> str:
    """What values a key takes."""
    schema = Settings.model_json_schema()
    section, _, name = key.rpartition(".")
    owner = schema["$defs"][schema["properties"][section]["$ref"].rpartition("/")[2]] if section else schema
    field = owner["properties"][name]
    options = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    return " or ".join(_one_kind(option) for option in options)


def _one_kind(option: Mapping[str, Any]) -> str:
    if "enum" in option:
        return ", ".join(option["enum"])
    names = {"string": "text", "array": "list of text", "object": "table", "boolean": "true or false"}
    kind = str(option["type"])
    if "anyOf" in option.get("items", {}):
        return "list of texts and tables"
    if "$ref" in option.get("items", {}):
        return "list of tables"
    bounds = [f"at least {option['minimum']}" if "minimum" in option else ""]
    bounds.append(f"above {option['exclusiveMinimum']}" if "exclusiveMinimum" in option else "")
    return ", ".join(filter(None, (names.get(kind, kind), *bounds)))
