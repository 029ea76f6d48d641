"""What each setting is, where its value comes from, and what every other source says. Secrets are never shown."""

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import data_dir, named_database
from graph_agent.config.project import Project
from graph_agent.config.settings import SECRET_KEYS, Settings, known_keys, suggest_key
from graph_agent.config.sources import (
    ADDITIVE_KEYS,
    ENVIRONMENT,
    FLAGS,
    Layer,
    Sourced,
    config_file,
    load_settings,
    merge_project,
    read_layers,
)
from graph_agent.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Explanation", "LayerValue", "describe_key", "describe_type", "explain", "explain_all"]


@dataclass(frozen=True, slots=True)
class LayerValue:
    """What one layer says about a key."""

    layer: str
    """flag, env, project, user or default."""
    place: str
    """The variable, the file, or what could be used to set it here."""
    value: Any
    """JSON value to show; None if the layer does not set it."""
    speaks: bool
    """Whether the layer sets the value and it counts."""
    ignored: str = ""
    """Why the value does not count; empty if it does, or there is none."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One setting, with the values of all layers."""

    key: str
    value: Any
    """JSON value to show."""
    layer: str
    """The layer that won."""
    origin: str
    """Where in it the value is set; empty for a default."""
    description: str
    allowed: str
    layers: tuple[LayerValue, ...]
    """Highest precedence first. Items that a project adds to a list or table of the user's are merged with it."""


def explain_all(
    env: Mapping[str, str], project: Project | None = None, database: str | None = None
) -> tuple[Explanation, ...]:
    """Every setting of this process; `database` is that of a flag.

    Raises:
        ConfigError: a value is wrong or a key unknown.
    """
    flags = {"database": database or None}
    load_settings(env, flags=flags, project=project)
    layers = read_layers(env, flags, project)
    places = {"user": str(config_file(env)), "project": str(project.config_path) if project else ""}
    return tuple(_explain(key, layers, places, env) for key in known_keys())


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
    raise UsageError(f"No setting is named {key!r}. {suggest_key(key)}")


def _explain(key: str, layers: tuple[Layer, ...], places: Mapping[str, str], env: Mapping[str, str]) -> Explanation:
    owner, name = _field(key)
    field = owner.model_fields[name]
    default_value = str(data_dir(env) / "graph-agent.db") if key == "database" else _plain(field.default)
    default = LayerValue("default", "", default_value, speaks=True)
    values = (*(_layer_value(key, layer, places) for layer in layers), default)
    winner = next(one for one in values if one.speaks)
    value = winner.value
    if key in ADDITIVE_KEYS and winner.layer == "project":
        project, user = layers[-2:]
        value = _shown(key, merge_project(user.values, project.values)[key])
    return Explanation(key, value, winner.layer, winner.place, describe_key(key), describe_type(key), values)


def _layer_value(key: str, layer: Layer, places: Mapping[str, str]) -> LayerValue:
    if (found := layer.values.get(key)) is not None:
        place = FLAGS[key] if layer.name == "flag" else found.origin
        return LayerValue(layer.name, place, _shown(key, found), speaks=True)
    variables = [name for name, sets in reversed(ENVIRONMENT) if sets == key]
    place = {"flag": FLAGS.get(key, ""), "env": ", ".join(variables), **places}[layer.name]
    ignored = layer.ignored.get(key) or layer.ignored.get("*")
    if ignored is None:
        return LayerValue(layer.name, place, None, speaks=False)
    value = _shown(key, Sourced(ignored.value, place))
    return LayerValue(layer.name, place, value, speaks=False, ignored=ignored.reason)


def _shown(key: str, found: Sourced) -> Any:
    value = found.value
    if key in SECRET_KEYS:
        if isinstance(value, dict):
            return f"set ({', '.join(value)})"
        return f"set ({'env ' if found.origin.isupper() else ''}{found.origin})"
    if key == "database":
        return _without_password(value)
    if key in ("mcp_servers", "models") and isinstance(value, dict):
        return {name: _without_secrets(entry) for name, entry in value.items()}
    return _plain(value)


def _without_password(database: Any) -> Any:
    try:
        return str(named_database(database, {}))
    except ConfigError:  # A project's value, which does not count.
        return _plain(database)


def _without_secrets(entry: Any) -> Any:
    """A server's or model's table without its secrets: of variables and headers only the names."""
    if not isinstance(entry, dict):
        return entry
    shown = dict(entry)
    for key, value in entry.items():
        match key:
            case "env" | "headers":
                shown[key] = sorted(value) if isinstance(value, dict) else "set"
            case "api_key":
                shown[key] = "set"
            case "url" | "base_url":
                shown[key] = display_url(str(value))
            case _:
                pass
    return shown


def _plain(value: Any) -> Any:
    if isinstance(value, str) and "://" in value:
        return display_url(value)
    return list(value) if isinstance(value, tuple) else value


def _field(key: str) -> "tuple[type[BaseModel], str]":
    """The model that a key belongs to, and its name there."""
    owner: type[BaseModel] = Settings
    *sections, name = key.split(".")
    for section in sections:
        inner = owner.model_fields[section].annotation
        assert isinstance(inner, type)  # noqa: S101 - known_keys made the key out of these very models
        owner = inner
    return owner, name


def describe_key(key: str) -> str:
    """What a key means: the docstring of its field."""
    owner, name = _field(key)
    return _docstrings(owner).get(name, "")


@cache
def _docstrings(model: "type[BaseModel]") -> Mapping[str, str]:
    [found] = ast.parse(inspect.getsource(model)).body
    assert isinstance(found, ast.ClassDef)  # noqa: S101 - the source of a class
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(found.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def describe_type(key: str) -> str:
    """What values a key takes."""
    schema = _schema()
    section, _, name = key.rpartition(".")
    owner = schema["$defs"][schema["properties"][section]["$ref"].rpartition("/")[2]] if section else schema
    field = owner["properties"][name]
    options = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    return " or ".join(_describe_option(option) for option in options)


@cache
def _schema() -> Mapping[str, Any]:
    """Made once: it takes some 20 ms, and every key is looked up in it."""
    return Settings.model_json_schema()


def _describe_option(option: Mapping[str, Any]) -> str:
    if "enum" in option:
        return ", ".join(option["enum"])
    if "anyOf" in option.get("items", {}):
        return "list of texts and tables"
    if "$ref" in option.get("items", {}):
        return "list of tables"
    names = {"string": "text", "array": "list of text", "object": "table", "boolean": "true or false"}
    described = [names.get(str(option["type"]), str(option["type"]))]
    for bound, words in (("minimum", "at least"), ("exclusiveMinimum", "above")):
        if bound in option:
            described.append(f"{words} {option[bound]}")
    return ", ".join(described)
