"""Change settings in a config.toml in one step; everything else in the file is kept, comments included."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError

from graph_agent.config.paths import locked_folder, named_database, read_plain_text, replace_text
from graph_agent.config.settings import known_keys, suggest_key
from graph_agent.config.sources import Sourced, build_settings, config_file, reject_bypass_mode
from graph_agent.errors import ConfigError, UsageError

__all__ = ["change_document", "set_in_table", "set_value", "unset_value"]


def change_document(path: Path, change: Callable[[str], str]) -> None:
    """Replace the text of a file, empty if there is no file yet, by what `change` makes of it.

    The file is private afterwards. Of two changes made at the same time none is lost.

    Raises:
        ConfigError: the file cannot be read or written, or is not TOML; whatever `change` raises.
    """
    try:
        with locked_folder(path.parent):
            before = ""
            with suppress(FileNotFoundError):
                before = read_plain_text(path)
            replace_text(path.resolve(), change(before))
    except (UnicodeDecodeError, TOMLKitError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}. Correct it or move it away.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}. Nothing was changed.") from error


def set_value(key: str, text: str, env: Mapping[str, str]) -> Path:
    """Set a key to a value given as text: TOML if it reads as TOML of the right kind, else the text itself.

    The file is replaced in one step and is private afterwards; returns its path.

    Raises:
        UsageError: there is no such key.
        ConfigError: the value does not fit, or the file cannot be read or written.
    """
    if key not in known_keys():
        raise UsageError(f"No setting is named {key!r}. {suggest_key(key)}")
    path = config_file(env)
    section, _, name = key.rpartition(".")
    return set_in_table((section,) if section else (), {name: _parse_value(key, text, path, env)}, env)


def _parse_value(key: str, text: str, path: Path, env: Mapping[str, str]) -> Any:
    """The value that the key takes, of the two that the text can mean."""
    readings: list[Any] = [text]
    with suppress(ParseError, ValueError):
        readings.insert(0, tomlkit.parse(f"value = {text}").unwrap()["value"])
    errors: list[ConfigError] = []
    for value in readings:
        found = Sourced(value, f"{path} (not written)")
        if key == "mode":
            reject_bypass_mode(found)
        try:
            if key == "database":
                named_database(value, env, path)
            else:
                build_settings({key: found, "database": Sourced(path, "")})
        except ConfigError as error:
            errors.append(error)
        else:
            return value
    raise errors[0]


def set_in_table(table: Sequence[str], values: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    """Set keys of a table given by the names on the way to it, e.g. ("models", "fast"); returns the file's path.

    Raises:
        ConfigError: the file cannot be read or written.
    """

    def change(before: str) -> str:
        document = tomlkit.parse(before)
        inner: Any = document
        for depth, name in enumerate(table, 1):
            if name not in inner:
                inner[name] = tomlkit.table(is_super_table=depth < len(table))
            inner = inner[name]
        inner.update(values)
        return tomlkit.dumps(document)

    path = config_file(env)
    change_document(path, change)
    return path


def unset_value(key: str, env: Mapping[str, str]) -> Path:
    """Remove a key from the user's file, so that weaker sources apply again; returns the file's path.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    section, _, name = key.rpartition(".")

    def change(before: str) -> str:
        document = tomlkit.parse(before)
        table: Any = document.get(section, {}) if section else document
        if name in table:
            del table[name]
        return tomlkit.dumps(document)

    path = config_file(env)
    change_document(path, change)
    return path
