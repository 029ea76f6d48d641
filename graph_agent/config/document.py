"""Changes a config.toml in one step; what else stands there stays, comments included. Knows no setting."""

from collections.abc import Callable
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.toml_document import TOMLDocument

from graph_agent.config.plain import plain_text
from graph_agent.config.writing import alone, replace_text
from graph_agent.errors import ConfigError

__all__ = ["change_document", "parsed_document"]


def change_document(path: Path, changed: Callable[[str], str]) -> None:
    """Replace a file's text, empty where there is no file yet, by what `changed` makes of it.

    The file is private afterwards. Of two changes made at once none is lost.

    Raises:
        ConfigError: the file cannot be read or written, or is no TOML; whatever `changed` raises.
    """
    try:
        with alone(path.parent):
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
        return plain_text(path)
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: ValueError | TOMLKitError) -> ConfigError:
    return ConfigError(f"{path} cannot be read as TOML: {error}. Correct it or move it away.")
