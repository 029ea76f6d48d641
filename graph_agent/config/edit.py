"""Writes settings into the user's config.toml. What else stands there stays, comments included.

Changes a config.toml in one step; what else stands there stays, comments included. Knows no setting.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.toml_document import TOMLDocument

from graph_agent.config.keys import Sourced, known_keys, suggest_key
from graph_agent.config.paths import database_path, locked_folder, read_plain_text, replace_text
from graph_agent.config.sources import build_settings, config_file, reject_bypass_mode
from graph_agent.errors import ConfigError, UsageError

__all__ = ["change_document", "parsed_document", "set_in_table", "set_value", "unset_value"]


def change_document(path: Path, changed: Callable[[str], str]) -> None:
    """Replace a file's text, empty where there is no file yet, by what `changed` makes of it.

    The file is private afterwards. Of two changes made at once none is lost.

    Raises:
        ConfigError: the file cannot be read or written, or is no TOML; whatever `changed` raises.
    """
    try:
        with locked_folder(path.parent):
            replace_text(path.resolve(), changed(_text(path)))
    except TOMLKitError as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}. Nothing was changed.") from error


def parsed_document(text: str) -> TOMLDocument:
    """The text as TOML that keeps its layout.

    Raises:
        TOMLKitError: it is none.
    """
    return tomlkit.parse(text)


def _text(path: Path) -> str:
    try:
        return read_plain_text(path)
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: ValueError | TOMLKitError) -> ConfigError:
    return ConfigError(f"{path} is not valid TOML: {error}. Correct it or move it away.")


def set_value(key: str, text: str, env: Mapping[str, str]) -> Path:
    """Set a key to a value given as text: TOML where it reads as TOML of the right kind, else the text itself.

    The file is replaced in one step and is private afterwards; returns its path.

    Raises:
        UsageError: there is no such key.
        ConfigError: the value does not fit, or the file cannot be read or written.
    """
    if key not in known_keys():
        raise UsageError(f"there is no setting {key!r}. {suggest_key(key)}")
    path = config_file(env)
    value = _fitting(key, text, path, env)
    change_document(path, lambda before: _with(parsed_document(before), key, value))
    return path


def unset_value(key: str, env: Mapping[str, str]) -> Path:
    """Take a key out of the user's file, so that what is weaker holds again; returns the file's path.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    path = config_file(env)
    change_document(path, lambda before: _without(parsed_document(before), key))
    return path


def set_in_table(table: Sequence[str], values: Mapping[str, Any], env: Mapping[str, str]) -> Path:
    """Set keys of a table given by the names on the way to it, e.g. ("models", "fast"); returns the file's path.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    path = config_file(env)
    change_document(path, lambda before: _with_all(parsed_document(before), table, values))
    return path


def _with_all(document: TOMLDocument, table: Sequence[str], values: Mapping[str, Any]) -> str:
    inner: Any = document
    for depth, name in enumerate(table, 1):
        if name not in inner:
            inner[name] = tomlkit.table(is_super_table=depth < len(table))
        inner = inner[name]
    inner.update(values)
    return tomlkit.dumps(document)


def _fitting(key: str, text: str, path: Path, env: Mapping[str, str]) -> Any:
    """The value that the key takes, of the two that the text can mean."""
    complaint: ConfigError | None = None
    for value in _readings(text):
        found = Sourced(value, f"{path} (not written)")
        if key == "mode":
            reject_bypass_mode(found)
        try:
            build_settings({key: found, "database": Sourced(database_path(env), "")})
        except ConfigError as error:
            complaint = complaint or error
        else:
            return value
    assert complaint is not None  # noqa: S101 - there is always one reading, and none fitted
    raise complaint


def _readings(text: str) -> Iterator[Any]:
    with suppress(ParseError, ValueError):
        yield tomlkit.parse(f"value = {text}").unwrap()["value"]
    yield text


def _with(document: TOMLDocument, key: str, value: Any) -> str:
    section, _, name = key.rpartition(".")
    if not section:
        document[name] = value
    else:
        if section not in document:
            document[section] = tomlkit.table()
        table: Any = document[section]
        table[name] = value
    return tomlkit.dumps(document)


def _without(document: TOMLDocument, key: str) -> str:
    section, _, name = key.rpartition(".")
    table: Any = document.get(section, {}) if section else document
    if name in table:
        del table[name]
    return tomlkit.dumps(document)
