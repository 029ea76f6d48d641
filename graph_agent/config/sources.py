"""Merges the settings of this process from their sources: flag, environment, project file, user file.

A project's settings only count if the user trusts its folder. It may add rules, servers, tools and hooks, and make
a few settings stricter; it may not set anything else.
"""

import contextlib
import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from graph_agent.config.model_choice import display_url
from graph_agent.config.paths import config_dir, data_dir, named_database, read_plain_text
from graph_agent.config.project import NOT_TRUSTED, Project
from graph_agent.config.settings import SECRET_KEYS, ModelSettings, Section, Settings, known_keys, suggest_key
from graph_agent.errors import ConfigError

__all__ = [
    "ADDITIVE_KEYS",
    "ENVIRONMENT",
    "FLAGS",
    "IgnoredValue",
    "Layer",
    "Sourced",
    "build_settings",
    "config_file",
    "item_key",
    "load_settings",
    "merge_project",
    "model_settings_for",
    "project_settings",
    "read_layers",
    "reject_bypass_mode",
    "stricter_mode",
    "uses_fallback_files",
    "with_model",
]

ENVIRONMENT: tuple[tuple[str, str], ...] = (
    ("OPENAI_BASE_URL", "model.base_url"),
    ("GRAPH_AGENT_BASE_URL", "model.base_url"),
    ("OPENAI_API_KEY", "model.api_key"),
    ("GRAPH_AGENT_MODEL", "model.name"),
    ("GRAPH_AGENT_LOCAL_MODEL", "model.local"),
    ("GRAPH_AGENT_MODE", "mode"),
    ("GRAPH_AGENT_WEBHOOK_SECRET", "notify.webhook_secret"),
    ("GRAPH_AGENT_DB", "database"),
)
"""Variables and the keys they set; of two for the same key the later one wins. Empty values count as unset."""

FLAGS: Mapping[str, str] = {
    "model.name": "--model",
    "model.stream": "--no-stream",
    "model.effort": "--effort",
    "mode": "--mode",
    "max_steps": "--max-steps",
    "max_tokens": "--max-tokens",
    "max_cost": "--max-cost",
    "notify.desktop": "--notify",
    "notify.webhook": "--notify",
    "database": "--db",
}
"""Keys that flags set, with the flag as the user wrote it."""

_FLAG_ONLY_MODE = "bypassPermissions"


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and where it was set."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class IgnoredValue:
    """A value of a project that does not count."""

    value: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """All that one source sets."""

    name: Literal["flag", "env", "project", "user"]
    values: Mapping[str, Sourced]
    """By dotted key; for a project's additions, without the user's own items."""
    ignored: Mapping[str, IgnoredValue] = field(default_factory=dict)
    """Values of a project that do not count."""


def load_settings(
    env: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    project: Project | None = None,
    user_text: str | None = None,
) -> Settings:
    """The settings of this process.

    Args:
        env: the environment; it also locates the config file.
        flags: values by dotted key, as in `FLAGS`; None means "not given".
        project: the project folder; without it no project settings are read.
        user_text: what the config file would contain, to test a change before it is written.

    Raises:
        ConfigError: a value is wrong or a key unknown; the message says where, and what is expected.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    values: dict[str, Sourced] = {}
    origins: dict[str, str] = {}
    names: list[Any] = []
    layers = read_layers(env, given, project, user_text)
    database = _chosen_database(layers, env)
    for layer in reversed(layers):
        if layer.name == "project":
            # Checked alone first, so that a wrong value is reported with its own place.
            build_settings({**layer.values, "database": database})
            origins = {
                item_key(key, one): item.origin
                for key, item in layer.values.items()
                if key in ADDITIVE_KEYS
                for one in item.value
            }
            values = merge_project(values, layer.values)
        else:
            values = {**values, **layer.values}
        names += [item.value] if (item := layer.values.get("model.name")) else []
    contents = _contents_of(project) if project is not None else {}
    settings = _with_model_flags(build_settings({**values, "database": database}, origins, contents), given)
    if settings.model.name not in settings.models:
        return settings
    # The configured name is that of a profile; the model itself has the strongest name that is none.
    own = [name for name in names if name not in settings.models]
    general = settings.model.model_copy(update={"name": own[-1] if own else None})
    return with_model(settings.model_copy(update={"model": general}), str(settings.model.name))


def _chosen_database(layers: Sequence[Layer], env: Mapping[str, str]) -> Sourced:
    for layer in layers:
        if (found := layer.values.get("database")) is not None:
            file = Path(found.origin) if layer.name == "user" else None
            return Sourced(named_database(found.value, env, file), found.origin)
    return Sourced(named_database(data_dir(env) / "graph-agent.db", env), "")


def _with_model_flags(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Flags such as `--effort` also hold for profiles that set the key themselves."""
    fields = {key.removeprefix("model."): flags[key] for key in ("model.effort", "model.stream") if key in flags}
    profiles = {name: profile.model_copy(update=fields) for name, profile in settings.models.items()}
    return settings.model_copy(update={"models": profiles})


def _contents_of(project: Project) -> dict[str, Any]:
    """What the files of a project contain besides settings."""
    return {
        "instructions": project.instructions,
        "is_folder_untrusted": bool(project.files) and not project.is_trusted,
        "project_tools": project.tools,
        "project_skills": project.skills,
        "project_agents": project.agents,
    }


def build_settings(
    values: Mapping[str, Sourced],
    origins: Mapping[str, str] | None = None,
    contents: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from values by dotted key, including the database.

    Args:
        values: the values.
        origins: where single items of lists and tables come from.
        contents: what a project's files contain besides settings.

    Raises:
        ConfigError: a value is wrong.
    """
    places = {key: item.origin for key, item in values.items() if item.origin}
    nested: dict[str, Any] = {"origins": {**places, **(origins or {})}, **(contents or {})}
    for key, item in values.items():
        section, _, name = key.rpartition(".")
        target = nested.setdefault(section, {}) if section else nested
        target[name] = item.value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        raise ConfigError(_validation_message(error, values)) from None


def read_layers(
    env: Mapping[str, str], flags: Mapping[str, Any], project: Project | None = None, user_text: str | None = None
) -> tuple[Layer, ...]:
    """The layers, highest precedence first. Keys are checked; values are not, except for bypassPermissions.

    `user_text`, if given, replaces the content of the user's file.

    Raises:
        ConfigError: a file that counts cannot be read, or the user's file has an unknown key.
    """
    given = {
        key: Sourced(value, f"flag {FLAGS.get(key, key)}") for key, value in flags.items() if value is not None
    }
    environment = {key: Sourced(env[name], name) for name, key in ENVIRONMENT if env.get(name)}
    path = config_file(env)
    user = _user_values(path, user_text)
    for layer in (environment, user):
        reject_bypass_mode(layer.get("mode"))
    layers = [Layer("flag", given), Layer("env", environment)]
    if project is not None:
        layers.append(project_settings(project, user))
    return (*layers, Layer("user", user))


def config_file(env: Mapping[str, str]) -> Path:
    """The user's config file, which may not exist."""
    return config_dir(env) / "config.toml"


def uses_fallback_files(env: Mapping[str, str]) -> bool:
    """The setting `fallback_files`, which is needed before a project's settings can be read.

    True where the user's file cannot be read, which is reported when the settings are loaded.
    """
    with contextlib.suppress(ConfigError):
        found = _user_values(config_file(env), None).get("fallback_files")
        return found is None or found.value is not False
    return True


def reject_bypass_mode(mode: Sourced | None) -> None:
    """Check that no file and no variable turns off all approvals.

    Raises:
        ConfigError: this value does.
    """
    if mode is not None and mode.value == _FLAG_ONLY_MODE:
        raise ConfigError(
            f"{mode.origin}: mode = {_FLAG_ONLY_MODE!r} is not accepted from a file or the environment. "
            f"Give --mode {_FLAG_ONLY_MODE} on the command line."
        )


def _user_values(path: Path, text: str | None) -> dict[str, Sourced]:
    try:
        text = read_plain_text(path) if text is None else text
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}. Correct it or move it away."
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}. Correct it or move it away.") from error
    values = {key: Sourced(value, str(path)) for key, value in _parse_config(text, str(path)).items()}
    for key in values:
        if key not in known_keys():
            raise ConfigError(f"{path}: unknown key {key!r}. {suggest_key(key)}")
    return values


def _parse_config(text: str, place: str) -> dict[str, Any]:
    """The values of a config file, by dotted key."""
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        raise ConfigError(f"{place} is not valid TOML: {reason}. Correct it or move it away.") from error
    sections = {key.partition(".")[0] for key in known_keys() if "." in key}
    values: dict[str, Any] = {}
    for key, value in tables.items():
        if key in sections and isinstance(value, dict):
            values |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            values["notify.terminal" if key == "notify" else key] = value  # Once the only setting.
    return values


def _validation_message(error: ValidationError, values: Mapping[str, Sourced]) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    # TOML has lists and tables.
    expected = first["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")
    expected = expected.replace("a valid dictionary", "a table")
    if first["type"] == "literal_error":
        choices = re.findall(r"'([^']*)'", expected)
        near = difflib.get_close_matches(str(first["input"]), choices, n=1)
        expected = f"{f'Did you mean {near[0]!r}? ' if near else ''}Choose one of {', '.join(choices)}"
    if place[0] in values and len(place) > 1:
        # A table with the user's own names: its other values are not shown, because they may be secrets.
        return f"{values[place[0]].origin}: {'.'.join(place)}: {expected}."
    key = ".".join(place[:2]) if ".".join(place[:2]) in values else place[0]
    item = values.get(key, Sourced(first["input"], "settings"))
    value = item.value
    if isinstance(value, str) and "://" in value:
        value = display_url(value)
    elif isinstance(value, str) and "@" in value:
        value = f"…@{value.rpartition('@')[2]}"  # In an unusable address, everything before an @ may be a password.
    return f"{item.origin}: {key} = {'(hidden)' if key in SECRET_KEYS else repr(value)}: {expected}."


ADDITIVE_KEYS = (
    *("policy.allow", "policy.ask", "policy.deny", "mcp_servers", "tools"),
    *("hooks.before_call", "hooks.approval"),
    *("hooks.session_start", "hooks.user_prompt", "hooks.before_tool", "hooks.after_tool", "hooks.turn_end"),
    *("hooks.on_waiting", "hooks.on_finished", "hooks.on_error"),
)
"""Lists and tables to which a project adds items."""

_FREE_KEYS = ("model.name",)
"""What a trusted project may set freely: it costs its user no more than they allow."""

_STRICTER_MODES: Mapping[str, tuple[str, ...]] = {
    "bypassPermissions": ("acceptEdits", "auto", "default", "dontAsk", "plan"),
    "acceptEdits": ("default", "dontAsk", "plan"),
    "auto": ("default", "dontAsk", "plan"),
    "default": ("dontAsk", "plan"),
}
"""Per mode, the modes in which no call runs that would not run in it, or would need approval in it."""


def stricter_mode(wanted: str, given: str) -> str:
    """The mode that is wanted if it is stricter than the given one, which is returned otherwise."""
    return wanted if wanted in _STRICTER_MODES.get(given, ()) else given


def _is_lower(new: Any, old: Any) -> bool:
    is_number = isinstance(new, int | float) and new > 0
    return is_number and (old is None or (isinstance(old, int | float) and new < old))


_IS_STRICTER: Mapping[str, Callable[[Any, Any], bool]] = {
    "mode": lambda new, old: new in _STRICTER_MODES.get(str(old), ()),
    **dict.fromkeys(("max_steps", "max_tokens", "max_cost", "max_thread_tokens", "max_thread_cost"), _is_lower),
    "max_task_depth": lambda new, old: isinstance(new, int) and isinstance(old, int) and 0 <= new < old,
    "sandbox": lambda new, old: (old, new) in (("off", "on"), ("off", "required"), ("on", "required")),
    "sandbox_network": lambda new, old: new is False and old is not False,
    "policy.shell_risk": lambda new, old: new == "declared" and old != "declared",
}
"""Settings that a project may make stricter, and whether a new value is stricter than the old one."""


def project_settings(project: Project, user: Mapping[str, Sourced]) -> Layer:
    """The layer of a project: what it may set beside the user's settings, and what is ignored.

    Raises:
        ConfigError: the folder is trusted and its settings cannot be read.
    """
    if project.config is None:
        return Layer("project", {})
    place = str(project.config_path)
    try:
        values = _parse_config(project.config.text, place)
    except ConfigError:
        if project.is_trusted:
            raise
        return Layer("project", {}, {"*": IgnoredValue(None, f"{NOT_TRUSTED}, and it is not TOML")})
    if not project.is_trusted:
        return Layer("project", {}, {key: IgnoredValue(value, NOT_TRUSTED) for key, value in values.items()})
    accepted: dict[str, Sourced] = {}
    ignored: dict[str, IgnoredValue] = {}
    for key, value in values.items():
        if key == "mcp_servers" and isinstance(value, dict):
            accepted[key] = Sourced(_accepted_servers(value, user.get(key), ignored), place)
        elif reason := _objection(key, value, user):
            ignored[key] = IgnoredValue(value, reason)
        else:
            accepted[key] = Sourced(value, place)
    return Layer("project", accepted, ignored)


def _accepted_servers(
    servers: Mapping[str, Any], user: Sourced | None, ignored: dict[str, IgnoredValue]
) -> dict[str, Any]:
    """The servers that a project may add, without a risk lower than high; adds to `ignored` what does not count."""
    taken = user.value if user and isinstance(user.value, dict) else {}
    accepted: dict[str, Any] = {}
    for name, server in servers.items():
        key = item_key("mcp_servers", name)
        if name in taken:
            ignored[key] = IgnoredValue(server, "you have a server with this name")
        elif isinstance(server, dict) and server.get("risk") in ("low", "medium"):
            # Also medium lowers it, because most tools have a higher risk if nothing is configured.
            ignored[f"{key}.risk"] = IgnoredValue(server["risk"], "a project may only raise a risk, to high")
            accepted[name] = {field: value for field, value in server.items() if field != "risk"}
        else:
            accepted[name] = server
    return accepted


def _objection(key: str, value: Any, user: Mapping[str, Sourced]) -> str:
    """Why a project may not set this value; empty if it may."""
    if key in ADDITIVE_KEYS or key in _FREE_KEYS:
        return ""
    if key not in known_keys():
        return "unknown setting"
    if key not in _IS_STRICTER:
        return "a project may not set this"
    own = user.get(key)
    old = own.value if own else _default(key)
    return "" if _IS_STRICTER[key](value, old) else "a project may only make this stricter"


def _default(key: str) -> Any:
    """The default of a setting by its dotted key."""
    fields, value = Settings.model_fields, None
    for name in key.split("."):
        value = fields[name].default
        fields = type(value).model_fields if isinstance(value, Section) else fields
    return value


def merge_project(user: Mapping[str, Sourced], accepted: Mapping[str, Sourced]) -> dict[str, Sourced]:
    """The user's settings, by dotted key, with the accepted ones of a project."""
    merged = dict(user)
    for key, item in accepted.items():
        own = user.get(key)
        if own is None or key not in ADDITIVE_KEYS:
            merged[key] = item
        elif isinstance(own.value, dict) and isinstance(item.value, dict):
            merged[key] = Sourced({**item.value, **own.value}, own.origin)
        elif isinstance(own.value, list) and isinstance(item.value, list):
            added = [one for one in item.value if one not in own.value]
            merged[key] = Sourced([*own.value, *added], own.origin)
        # Otherwise the user's own value has a wrong type, which is reported when it is validated.
    return merged


def item_key(key: str, item: Any) -> str:
    """The key of one item of a list or table in the origins."""
    name = item.get("rule") or item.get("command", "") if isinstance(item, dict) else item
    return f"{key}.{name}"


_ENDPOINT_FIELDS = ("api_key", "headers", "extra_body", "ca_file", "factory")
"""Belong to an address: a profile with another address does not inherit them."""

_MODEL_FIELDS = ("name", "context_window")
"""Belong to a model: a profile with another model or address does not inherit them."""


def model_settings_for(settings: Settings, name: str) -> ModelSettings:
    """The settings of a model by name: the profile `[models.NAME]`, else a model of the endpoint in use."""
    profile = settings.models.get(name)
    if profile is not None:
        return _complete_profile(profile, settings.general_model or settings.model)
    present = settings.model
    if name == present.name:
        return present
    return present.model_copy(update={"name": name, "context_window": None})


def _complete_profile(profile: ModelSettings, general: ModelSettings) -> ModelSettings:
    """The profile, with unset fields taken from `[model]` if they belong to the same endpoint or model."""
    own = profile.model_fields_set
    is_elsewhere = "base_url" in own and profile.endpoint != general.endpoint
    is_another = is_elsewhere or ("name" in own and profile.name != general.name)
    excluded = {*(_ENDPOINT_FIELDS if is_elsewhere else ()), *(_MODEL_FIELDS if is_another else ())}
    inherited = {field: getattr(general, field) for field in general.model_fields_set - own - excluded}
    return profile.model_copy(update=inherited)


def with_model(settings: Settings, name: str) -> Settings:
    """The settings with the model of this name in use; profiles still inherit from `[model]`."""
    return settings.model_copy(
        update={
            "model": model_settings_for(settings, name),
            "general_model": settings.general_model or settings.model,
            "profile": name if name in settings.models else settings.profile,
        }
    )
