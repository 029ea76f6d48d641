"""Where settings come from, strongest first: flag, environment, the project's config.toml, the user's.

A project says something only as far as the user trusted its folder, and never more than `tightening` lets through.

Makes the settings of this process out of the layers they come from: the strongest that speaks wins.

Makes the settings of one model out of `[model]` and the profile that a name means. Pure; asks no endpoint.

Which of a project's settings count: rules and servers are added, a few may only tighten, the rest never do.

Pure: looks at values, and knows neither files nor whether anybody is asked.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from graph_agent.config.keys import SECRET_KEYS, Sourced, flattened, known_keys, meant_key
from graph_agent.config.paths import config_dir, database_path, read_plain_text
from graph_agent.config.project import NOT_TRUSTED, Project
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ConfigError

__all__ = [
    "ADDED",
    "ENVIRONMENT",
    "FLAGS",
    "IgnoredValue",
    "Layer",
    "ProjectSettings",
    "config_file",
    "item_key",
    "load_settings",
    "model_settings_for",
    "origins_of_items",
    "project_settings",
    "read_layers",
    "read_tables",
    "refuse_bypass",
    "settings_from",
    "together",
    "with_model",
]

ADDED = (
    *("policy.allow", "policy.ask", "policy.deny", "mcp_servers", "tools"),
    *("hooks.session_start", "hooks.user_prompt", "hooks.before_tool", "hooks.after_tool", "hooks.turn_end"),
)
"""Lists and tables that a project adds to."""

_CHOSEN = ("model.name",)
"""What a trusted project may choose freely: no more is done with it than its user could be charged for."""

_STRICTER_MODES: Mapping[str, tuple[str, ...]] = {
    "bypassPermissions": ("acceptEdits", "auto", "default", "dontAsk", "plan"),
    "acceptEdits": ("default", "dontAsk", "plan"),
    "auto": ("default", "dontAsk", "plan"),
    "default": ("dontAsk", "plan"),
}
"""Mode and those in which no call runs that would not run in it, nor runs unasked."""

_STRICTER_SANDBOXES = (("off", "on"), ("off", "required"), ("on", "required"))


def _is_lower(new: Any, old: Any) -> bool:
    is_number = isinstance(new, int | float) and new > 0
    return is_number and (old is None or (isinstance(old, int | float) and new < old))


_TIGHTER: Mapping[str, Callable[[Any, Any], bool]] = {
    "mode": lambda new, old: new in _STRICTER_MODES.get(str(old), ()),
    "max_steps": _is_lower,
    "max_tokens": _is_lower,
    "max_cost": _is_lower,
    "max_thread_tokens": _is_lower,
    "max_thread_cost": _is_lower,
    "max_task_depth": lambda new, old: isinstance(new, int) and isinstance(old, int) and 0 <= new < old,
    "sandbox": lambda new, old: (old, new) in _STRICTER_SANDBOXES,
    "sandbox_network": lambda new, old: new is False and old is not False,
}
"""Settings a project may make stricter, and whether a value is stricter than the one that stands."""

_ONLY_TIGHTER = "a project may only tighten this"
_NOT_ITS_OWN = "a project may not set this"
_ONLY_HIGH = "a project may only raise a risk, to high"
_UNKNOWN = "no such setting"
_TAKEN = "a server of your own has this name"


@dataclass(frozen=True, slots=True)
class IgnoredValue:
    """A value of a project that does not count."""

    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a project's settings come to."""

    counting: Mapping[str, Sourced] = field(default_factory=dict)
    """By dotted key; what is added stands here without what it is added to."""
    ignored: Mapping[str, IgnoredValue] = field(default_factory=dict)


def project_settings(project: Project, standing: Mapping[str, Sourced]) -> ProjectSettings:
    """What counts of a project's settings beside those of the user, given by dotted key.

    Raises:
        ConfigError: the folder is trusted and its settings cannot be read.
    """
    if project.config is None:
        return ProjectSettings()
    place = str(project.config_path)
    try:
        said = read_tables(project.config.text, place)
    except ConfigError:
        if project.is_trusted:
            raise
        return ProjectSettings(ignored={"*": IgnoredValue(None, f"{NOT_TRUSTED}, and it is no TOML")})
    if not project.is_trusted:
        return ProjectSettings(ignored={key: IgnoredValue(value, NOT_TRUSTED) for key, value in said.items()})
    return _sorted_out(said, standing, place)


def together(standing: Mapping[str, Sourced], counting: Mapping[str, Sourced]) -> dict[str, Sourced]:
    """The user's settings, by dotted key, with those of a project that count."""
    merged = dict(standing)
    for key, found in counting.items():
        own = standing.get(key)
        merged[key] = Sourced(_added(own.value, found.value), own.origin) if own and key in ADDED else found
    return merged


def origins_of_items(counting: Mapping[str, Sourced]) -> dict[str, str]:
    """Where each item stands that a project adds to a list or table, by a key of its own."""
    added = {key: found for key, found in counting.items() if key in ADDED}
    return {item_key(key, item): found.origin for key, found in added.items() for item in found.value}


def item_key(key: str, item: Any) -> str:
    """Under which key the origins name the place of one item of a list or table."""
    name = item.get("rule") or item.get("command", "") if isinstance(item, dict) else item
    return f"{key}.{name}"


def read_tables(text: str, place: str) -> dict[str, Any]:
    """The values of a config file, by dotted key.

    Raises:
        ConfigError: it is no TOML.
    """
    try:
        return dict(flattened(tomllib.loads(text.removeprefix("\ufeff"))))
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise ConfigError(f"{place} cannot be read as TOML: {why}. Correct it or move it away.") from error


def _sorted_out(said: Mapping[str, Any], standing: Mapping[str, Sourced], place: str) -> ProjectSettings:
    counting: dict[str, Sourced] = {}
    ignored: dict[str, IgnoredValue] = {}
    for key, value in said.items():
        if key == "mcp_servers" and isinstance(value, dict):
            taken = _own(standing, key)
            ignored |= {item_key(key, name): IgnoredValue(value[name], _TAKEN) for name in value if name in taken}
            theirs = {name: one for name, one in value.items() if name not in taken}
            lowered = {name: one["risk"] for name, one in theirs.items() if _lowers(one)}
            ignored |= {
                item_key(key, f"{name}.risk"): IgnoredValue(risk, _ONLY_HIGH) for name, risk in lowered.items()
            }
            counting[key] = Sourced(
                {name: _without_risk(one) if name in lowered else one for name, one in theirs.items()}, place
            )
        elif why := _objection(key, value, standing):
            ignored[key] = IgnoredValue(value, why)
        else:
            counting[key] = Sourced(value, place)
    return ProjectSettings(counting, ignored)


def _lowers(server: Any) -> bool:
    """Also "medium" does: it is less than what most tools have where nothing is said."""
    return isinstance(server, dict) and server.get("risk") in ("low", "medium")


def _without_risk(server: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in server.items() if key != "risk"}


def _objection(key: str, value: Any, standing: Mapping[str, Sourced]) -> str:
    if key in ADDED or key in _CHOSEN:
        return ""
    if key in _TIGHTER and key in known_keys():
        found = standing.get(key)
        old = found.value if found else Settings.model_fields[key].default
        return "" if _TIGHTER[key](value, old) else _ONLY_TIGHTER
    return _NOT_ITS_OWN if key in known_keys() else _UNKNOWN


def _own(standing: Mapping[str, Sourced], key: str) -> Mapping[str, Any]:
    found = standing.get(key)
    return found.value if found and isinstance(found.value, dict) else {}


def _added(own: Any, more: Any) -> Any:
    if type(own) is not type(more):
        return own  # The user's own value is of a wrong kind, which is told when it is checked.
    if isinstance(own, dict):
        return {**more, **own}
    return [*own, *(item for item in more if item not in own)]


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
    values: Mapping[str, Sourced]
    """By dotted key; of a project, what is added to the user's stands here without it."""
    ignored: Mapping[str, IgnoredValue] = field(default_factory=dict)
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
    given = {
        key: Sourced(value, f"flag {FLAGS.get(key, key)}") for key, value in flags.items() if value is not None
    }
    environment = {key: Sourced(env[name], name) for name, key in ENVIRONMENT if env.get(name)}
    path = config_file(env)
    user = _from_file(path) if user_text is None else _said(user_text, path)
    for layer in (environment, user):
        refuse_bypass(layer.get("mode"))
    return (Layer("flag", given), Layer("env", environment), *_of(project, user), Layer("user", user))


def _of(project: Project | None, user: Mapping[str, Sourced]) -> tuple[Layer, ...]:
    if project is None:
        return ()
    said = project_settings(project, user)
    return (Layer("project", said.counting, said.ignored),)


def refuse_bypass(mode: Sourced | None) -> None:
    """Let no file and no variable take all questions away.

    Raises:
        ConfigError: this value does.
    """
    if mode is not None and mode.value == _FLAG_ONLY_MODE:
        raise ConfigError(
            f"{mode.origin}: mode = {_FLAG_ONLY_MODE!r} is never taken from a file or the environment; "
            f"give --mode {_FLAG_ONLY_MODE} on the command line for the one run that needs it."
        )


def _from_file(path: Path) -> dict[str, Sourced]:
    try:
        text = read_plain_text(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}. Correct it or move it away."
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read as TOML: {error}. Correct it or move it away.") from error
    return _said(text, path)


def _said(text: str, path: Path) -> dict[str, Sourced]:
    found = {key: Sourced(value, str(path)) for key, value in read_tables(text, str(path)).items()}
    for key in found:
        if key not in known_keys():
            raise ConfigError(f"{path}: unknown key {key!r}. {meant_key(key)}")
    return found


_OF_THE_ENDPOINT = ("api_key", "headers", "extra_body", "ca_file", "factory")
"""Belong to the address they stand beside: a profile with an address of its own inherits none of them."""

_OF_THE_MODEL = ("name", "context_window")
"""Belong to one model: a profile that names another one, or another address, inherits none of them."""


def model_settings_for(settings: Settings, name: str) -> ModelSettings:
    """How the model of this name is asked: the profile `[models.NAME]`, else a model of the endpoint in use."""
    profile = settings.models.get(name)
    if profile is not None:
        return _completed(profile, settings.general_model or settings.model)
    present = settings.model
    if name == present.name:
        return present
    return present.model_copy(update={"name": name, "context_window": None})


def with_model(settings: Settings, name: str) -> Settings:
    """The settings with the model of this name in use. What a profile inherits stays what `[model]` says."""
    return settings.model_copy(
        update={
            "model": model_settings_for(settings, name),
            "general_model": settings.general_model or settings.model,
            "profile": name if name in settings.models else settings.profile,
        }
    )


def _completed(profile: ModelSettings, general: ModelSettings) -> ModelSettings:
    """The profile, with what it leaves unset taken from `[model]` where it belongs to the same thing."""
    own = profile.model_fields_set
    is_elsewhere = "base_url" in own and profile.endpoint != general.endpoint
    is_another = is_elsewhere or ("name" in own and profile.name != general.name)
    foreign = {*(_OF_THE_ENDPOINT if is_elsewhere else ()), *(_OF_THE_MODEL if is_another else ())}
    inherited: dict[str, Any] = {
        field: getattr(general, field) for field in general.model_fields_set - own if field not in foreign
    }
    return profile.model_copy(update=inherited)


def load_settings(
    env: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    project: Project | None = None,
    user_text: str | None = None,
) -> Settings:
    """The settings of this process.

    Args:
        env: the environment; also says where the config file lies.
        flags: values by dotted key, those of `FLAGS`; None is "not given".
        project: the folder that is worked in; without it no project has a say.
        user_text: what the config file would say, to try a change before it is written.

    Raises:
        ConfigError: a value is wrong or a key unknown; the message names where it stands and what is expected.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    found: dict[str, Sourced] = {}
    origins: dict[str, str] = {}
    names: list[Any] = []
    database = Sourced(database_path(env, given.get("database")), "flag --db" if "database" in given else "")
    for layer in reversed(read_layers(env, given, project, user_text)):
        if layer.name == "project":
            # Alone first: a wrong value is told with the place it stands at.
            settings_from({**layer.values, "database": database})
            origins = origins_of_items(layer.values)
        found = together(found, layer.values) if layer.name == "project" else {**found, **layer.values}
        names += [item.value] if (item := layer.values.get("model.name")) else []
    return _with_profile(settings_from({**found, "database": database}, origins, _brought(project)), names)


def _brought(project: Project | None) -> dict[str, Any]:
    if project is None:
        return {}
    return {
        "instructions": project.instructions,
        "project_tools": project.tools,
        "project_skills": project.skills,
    }


def settings_from(
    found: Mapping[str, Sourced], origins: Mapping[str, str] | None = None, brought: Mapping[str, Any] | None = None
) -> Settings:
    """Settings of these values, by dotted key, the database among them.

    `origins` are those of single items, `brought` is what a project's files hold besides settings.

    Raises:
        ConfigError: a value is wrong.
    """
    places = {key: item.origin for key, item in found.items() if item.origin}
    nested: dict[str, Any] = {"origins": {**places, **(origins or {})}, **(brought or {})}
    for key, item in found.items():
        section, _, name = key.rpartition(".")
        target = nested.setdefault(section, {}) if section else nested
        target[name] = item.value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        raise ConfigError(_complaint(error, found)) from None


def _with_profile(settings: Settings, names: Sequence[Any]) -> Settings:
    """The settings with the profile that the strongest of these names, which stand last, may mean."""
    if settings.model.name not in settings.models:
        return settings
    own = [name for name in names if name not in settings.models]
    general = settings.model.model_copy(update={"name": own[-1] if own else None})
    return with_model(settings.model_copy(update={"model": general}), str(settings.model.name))


def _complaint(error: ValidationError, found: Mapping[str, Sourced]) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    said = f"{_in_toml(first['msg'].removeprefix('Value error, '))}."
    if place[0] in found and len(place) > 1:
        # A table of the user's own names: what stands beside the wrong value is not shown, it may be a secret.
        return f"{found[place[0]].origin}: {'.'.join(place)}: {said}"
    key = ".".join(place[:2]) if ".".join(place[:2]) in found else place[0]
    item = found.get(key, Sourced(first["input"], "settings"))
    shown = "(hidden)" if key in SECRET_KEYS else repr(_without_user(item.value))
    return f"{item.origin}: {key} = {shown}: {said}"


def _in_toml(message: str) -> str:
    """The message in the words of a config file, which knows lists and tables."""
    return message.replace("a valid tuple", "a list").replace("a valid dictionary", "a table")


def _without_user(value: Any) -> Any:
    """An address that cannot be used may be no address at all: all before an @ may be a password."""
    return f"…@{value.rpartition('@')[2]}" if isinstance(value, str) and "@" in value else value
