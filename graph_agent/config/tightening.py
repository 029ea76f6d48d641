"""Which of a project's settings count: rules and servers are added, a few may only tighten, the rest never do.

Pure: looks at values, and knows neither files nor whether anybody is asked.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graph_agent.config.found import Found, flattened
from graph_agent.config.keys import known_keys
from graph_agent.config.project import NOT_TRUSTED, Project
from graph_agent.config.settings import Settings
from graph_agent.errors import ConfigError

__all__ = [
    "ADDED",
    "Ignored",
    "ProjectSettings",
    "item_key",
    "origins_of_items",
    "project_settings",
    "read_tables",
    "together",
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
class Ignored:
    """A value of a project that does not count."""

    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What a project's settings come to."""

    counting: Mapping[str, Found] = field(default_factory=dict)
    """By dotted key; what is added stands here without what it is added to."""
    ignored: Mapping[str, Ignored] = field(default_factory=dict)


def project_settings(project: Project, standing: Mapping[str, Found]) -> ProjectSettings:
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
        if project.counts:
            raise
        return ProjectSettings(ignored={"*": Ignored(None, f"{NOT_TRUSTED}, and it is no TOML")})
    if not project.counts:
        return ProjectSettings(ignored={key: Ignored(value, NOT_TRUSTED) for key, value in said.items()})
    return _sorted_out(said, standing, place)


def together(standing: Mapping[str, Found], counting: Mapping[str, Found]) -> dict[str, Found]:
    """The user's settings, by dotted key, with those of a project that count."""
    merged = dict(standing)
    for key, found in counting.items():
        own = standing.get(key)
        merged[key] = Found(_added(own.value, found.value), own.origin) if own and key in ADDED else found
    return merged


def origins_of_items(counting: Mapping[str, Found]) -> dict[str, str]:
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


def _sorted_out(said: Mapping[str, Any], standing: Mapping[str, Found], place: str) -> ProjectSettings:
    counting: dict[str, Found] = {}
    ignored: dict[str, Ignored] = {}
    for key, value in said.items():
        if key == "mcp_servers" and isinstance(value, dict):
            taken = _own(standing, key)
            ignored |= {item_key(key, name): Ignored(value[name], _TAKEN) for name in value if name in taken}
            theirs = {name: one for name, one in value.items() if name not in taken}
            lowered = {name: one["risk"] for name, one in theirs.items() if _lowers(one)}
            ignored |= {item_key(key, f"{name}.risk"): Ignored(risk, _ONLY_HIGH) for name, risk in lowered.items()}
            counting[key] = Found(
                {name: _without_risk(one) if name in lowered else one for name, one in theirs.items()}, place
            )
        elif why := _objection(key, value, standing):
            ignored[key] = Ignored(value, why)
        else:
            counting[key] = Found(value, place)
    return ProjectSettings(counting, ignored)


def _lowers(server: Any) -> bool:
    """Also "medium" does: it is less than what most tools have where nothing is said."""
    return isinstance(server, dict) and server.get("risk") in ("low", "medium")


def _without_risk(server: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in server.items() if key != "risk"}


def _objection(key: str, value: Any, standing: Mapping[str, Found]) -> str:
    if key in ADDED or key in _CHOSEN:
        return ""
    if key in _TIGHTER and key in known_keys():
        found = standing.get(key)
        old = found.value if found else Settings.model_fields[key].default
        return "" if _TIGHTER[key](value, old) else _ONLY_TIGHTER
    return _NOT_ITS_OWN if key in known_keys() else _UNKNOWN


def _own(standing: Mapping[str, Found], key: str) -> Mapping[str, Any]:
    found = standing.get(key)
    return found.value if found and isinstance(found.value, dict) else {}


def _added(own: Any, more: Any) -> Any:
    if type(own) is not type(more):
        return own  # The user's own value is of a wrong kind, which is told when it is checked.
    if isinstance(own, dict):
        return {**more, **own}
    return [*own, *(item for item in more if item not in own)]
