"""Makes the settings of this process out of the layers they come from: the strongest that speaks wins."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from graph_agent.config.found import Found
from graph_agent.config.keys import SECRET_KEYS
from graph_agent.config.layers import read_layers
from graph_agent.config.paths import database_path
from graph_agent.config.profiles import with_model
from graph_agent.config.project import Project
from graph_agent.config.settings import Settings
from graph_agent.config.tightening import origins_of_items, together
from graph_agent.errors import ConfigError

__all__ = ["load_settings", "settings_from"]


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
    found: dict[str, Found] = {}
    origins: dict[str, str] = {}
    names: list[Any] = []
    database = Found(database_path(env, given.get("database")), "flag --db" if "database" in given else "")
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
    found: Mapping[str, Found], origins: Mapping[str, str] | None = None, brought: Mapping[str, Any] | None = None
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


def _complaint(error: ValidationError, found: Mapping[str, Found]) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    said = f"{_in_toml(first['msg'].removeprefix('Value error, '))}."
    if place[0] in found and len(place) > 1:
        # A table of the user's own names: what stands beside the wrong value is not shown, it may be a secret.
        return f"{found[place[0]].origin}: {'.'.join(place)}: {said}"
    key = ".".join(place[:2]) if ".".join(place[:2]) in found else place[0]
    item = found.get(key, Found(first["input"], "settings"))
    shown = "(hidden)" if key in SECRET_KEYS else repr(_without_user(item.value))
    return f"{item.origin}: {key} = {shown}: {said}"


def _in_toml(message: str) -> str:
    """The message in the words of a config file, which knows lists and tables."""
    return message.replace("a valid tuple", "a list").replace("a valid dictionary", "a table")


def _without_user(value: Any) -> Any:
    """An address that cannot be used may be no address at all: all before an @ may be a password."""
    return f"…@{value.rpartition('@')[2]}" if isinstance(value, str) and "@" in value else value
