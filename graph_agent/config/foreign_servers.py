"""Reads the MCP servers of other clients' JSON files as tables of ours; what has no counterpart is named."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph_agent.errors import UsageError

__all__ = ["ForeignServer", "foreign_servers"]

_SECTIONS = (("mcpServers",), ("servers",), ("mcp", "servers"))
"""Where clients keep them: most of them, VS Code in a file of its own, VS Code in its settings."""
_ADDRESSES = ("url", "httpUrl", "serverUrl")
_KINDS = ("stdio", "http", "streamable-http", "streamableHttp", "streamable_http")
_OF_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}")
_UNKNOWN_VARIABLE = re.compile(r"\$\{[^}]*\}")
_OWN_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_WORKSPACE = ("${workspaceFolder}", "${workspaceRoot}")


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """One server of such a file."""

    name: str
    table: Mapping[str, Any]
    left_out: tuple[str, ...]
    """Its keys that mean nothing here."""


def foreign_servers(text: str, only: str | None = None) -> list[ForeignServer]:
    """Every server of the file, in its order; or the one of this name.

    Raises:
        UsageError: it is no such file, or a server of it cannot be used here; the message says which.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is no JSON: {error}") from error
    section = _section(found)
    if not section:
        raise UsageError(
            'there are no servers in it; {"mcpServers": {NAME: {"command": ..., "args": [...]}}} has one'
        )
    if only is not None and only not in section:
        raise UsageError(f"there is no server {only!r} in it; it has: {', '.join(section)}")
    return [_server(name, entry) for name, entry in section.items() if only in (None, name)]


def _section(found: Any) -> Mapping[str, Any]:
    for path in _SECTIONS:
        place = found
        for key in path:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            return place
    return {}


def _server(name: str, entry: Any) -> ForeignServer:
    if not isinstance(entry, dict):
        raise UsageError(f"server {name!r} should be an object with a command or a url")
    kind = entry.get("type", entry.get("transport", "stdio"))
    if kind not in _KINDS:
        raise UsageError(
            f"server {name!r} is of type {kind!r}; there are stdio and http (streamable HTTP). "
            "Its file's others are taken by name: graph-agent mcp add NAME --from FILE"
        )
    table = {key: value for key, value in _table(name, entry) if value not in (None, [], {})}
    known = {"command", "args", "env", "headers", "type", "transport", "disabled", *_ADDRESSES}
    return ForeignServer(name, table, tuple(key for key in entry if key not in known))


def _table(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    command = entry.get("command")
    # A whole command line in a list is how some write it.
    words = command if isinstance(command, list) else [command] if command is not None else []
    arguments = entry.get("args") or []
    words = [*words, *(arguments if isinstance(arguments, list) else [arguments])]
    yield "command", _word(name, words[0]) if words else None
    yield "args", [_word(name, word) for word in words[1:]]
    yield "env", _values(name, entry.get("env"))
    yield "url", next((entry[key] for key in _ADDRESSES if entry.get(key)), None)
    yield "headers", _values(name, entry.get("headers"))
    if entry.get("disabled") is True:
        yield "enabled", False


def _word(name: str, word: Any) -> str:
    """A word of the command line; servers are started in the workspace."""
    text = str(word)
    for variable in _WORKSPACE:
        text = text.replace(variable, ".")
    if (found := _UNKNOWN_VARIABLE.search(text)) is not None:
        raise UsageError(f"server {name!r}: {found[0]} in its command line is not replaced here; write the value")
    return text


def _values(name: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict):
        return {}
    told = {key: _OF_ENVIRONMENT.sub(r"${\1}", str(value)) for key, value in values.items() if value is not None}
    for key, value in told.items():
        _require_known(f"server {name!r}, {key}", _UNKNOWN_VARIABLE.findall(value))
    return told


def _require_known(place: str, variables: Sequence[str]) -> None:
    for variable in variables:
        if _OWN_VARIABLE.fullmatch(variable) is None:
            raise UsageError(f"{place}: {variable} is not known here; write ${{NAME}} for a variable of yours")
