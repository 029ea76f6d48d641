"""Tables of MCP servers in a config.toml, and the import of servers from other clients' JSON files.

Writing or deleting a table keeps everything else in the file as it is.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import ValidationError

from graph_agent.config.edit import change_document
from graph_agent.config.settings import McpServer
from graph_agent.errors import ConfigError, UsageError

__all__ = ["ClientServer", "delete_server_table", "parse_client_config", "validate_server", "write_server_tables"]

_SECTION = "mcp_servers"


def validate_server(name: str, table: Mapping[str, Any]) -> McpServer:
    """The server that a table describes.

    Raises:
        UsageError: the table is invalid; the message holds no value, which may be a secret.
    """
    if not name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is not a valid server name. Use letters and digits, e.g. tickets.")
    try:
        return McpServer.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (name, *first["loc"]))
        raise UsageError(f"{place}: {first['msg'].removeprefix('Value error, ')}. Nothing was changed.") from None


def write_server_tables(
    path: Path,
    tables: Mapping[str, Mapping[str, Any]],
    *,
    replace: bool = False,
    validate: Callable[[str], object] = lambda _: None,
) -> None:
    """Write the tables into a config file, all or none; `validate` gets the whole text before it is written.

    Raises:
        UsageError: a name is taken and `replace` is False.
        ConfigError: the file cannot be read or written; whatever `validate` raises.
    """

    def change(before: str) -> str:
        present = _server_tables(before)
        taken = [name for name in tables if name in present]
        if taken and not replace:
            raise UsageError(
                f"{path} already has a server {', '.join(map(repr, taken))}. Choose another name, or use --replace."
            )
        text = _verified(path, _with_tables(before, tables, taken), _expected(before, {**present, **tables}))
        validate(text)
        return text

    change_document(path, change)


def delete_server_table(path: Path, name: str) -> None:
    """Remove a server's table from a config file.

    Raises:
        UsageError: the file has none of this name.
        ConfigError: the file cannot be read or written.
    """

    def change(before: str) -> str:
        present = _server_tables(before)
        if name not in present:
            raise UsageError(f"{path} has no MCP server {name!r}. It has: {', '.join(present) or 'none'}.")
        left = {one: table for one, table in present.items() if one != name}
        return _verified(path, _without_tables(before, [name]), _expected(before, left))

    change_document(path, change)


def _server_tables(text: str) -> dict[str, Any]:
    found = tomlkit.parse(text).unwrap().get(_SECTION, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{_SECTION} = {found!r} should be a table of servers. Nothing was changed.")
    return found


def _with_tables(before: str, tables: Mapping[str, Mapping[str, Any]], taken: list[str]) -> str:
    kept = _without_tables(before, taken)
    added = "\n".join(_format_table(name, table) for name, table in tables.items())
    appended = f"{kept.rstrip()}\n\n{added}" if kept.strip() else added
    try:
        tomllib.loads(appended)
    except ValueError:
        # The section is written in one line, which no table can be added to from outside.
        document: Any = tomlkit.parse(kept)
        for name, table in tables.items():
            document[_SECTION][name] = _inline(table)
        return tomlkit.dumps(document)
    return appended


def _format_table(name: str, table: Mapping[str, Any]) -> str:
    document, section, own = tomlkit.document(), tomlkit.table(is_super_table=True), tomlkit.table()
    for key, value in table.items():
        own.append(key, _inline(value) if isinstance(value, Mapping) else value)
    section.append(name, own)
    document.append(_SECTION, section)
    return tomlkit.dumps(document)


def _inline(table: Mapping[str, Any]) -> Any:
    inline = tomlkit.inline_table()
    for key, value in table.items():
        inline.append(key, _inline(value) if isinstance(value, Mapping) else value)
    return inline


def _without_tables(text: str, names: list[str]) -> str:
    if not names:
        return text
    left = _without_lines(text, names)
    remaining = {name: table for name, table in _server_tables(text).items() if name not in names}
    if not _reads_as(left, _expected(text, remaining)):
        document: Any = tomlkit.parse(text)
        for name in names:
            del document[_SECTION][name]
        if not document[_SECTION]:
            del document[_SECTION]
        left = tomlkit.dumps(document)
    return f"{left.rstrip()}\n" if left.strip() else ""


def _without_lines(text: str, names: list[str]) -> str:
    """Without the tables that have headings of their own; comments after them stay, they may be the next's."""
    kept: list[str] = []
    dropped: list[str] = []
    is_dropping = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("[") and (server := _heading_server(line)) is not None:
            kept += _trailing_comments(dropped)
            dropped, is_dropping = [], server in names
        (dropped if is_dropping else kept).append(line)
    return "".join([*kept, *_trailing_comments(dropped)])


def _heading_server(heading: str) -> str | None:
    """The server whose table a heading begins, empty if it is of something else; None: it is no heading."""
    try:
        found = tomllib.loads(heading).get(_SECTION, {})
    except ValueError:
        return None
    return next(iter(found), "") if isinstance(found, dict) else ""


def _trailing_comments(lines: list[str]) -> list[str]:
    content = [number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in lines[content[-1] + 1 :] if line.strip()] if content else []


def _verified(path: Path, text: str, expected: Mapping[str, Any]) -> str:
    """The text, once it is certain that it reads as expected."""
    if not _reads_as(text, expected):
        raise ConfigError(f"{path} is laid out so that it can only be changed by hand. Nothing was changed.")
    return text


def _expected(before: str, servers: Mapping[str, Any]) -> dict[str, Any]:
    """Everything in the text, with these servers in place of its own."""
    others = {key: value for key, value in tomlkit.parse(before).unwrap().items() if key != _SECTION}
    return {**others, _SECTION: dict(servers)} if servers else others


def _reads_as(text: str, expected: Mapping[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except ValueError:
        return False
    return {key: value for key, value in found.items() if key != _SECTION or value} == expected


_CLIENT_SECTIONS = (("mcpServers",), ("servers",), ("mcp", "servers"))
"""Where clients keep them: most of them, VS Code in a file of its own, VS Code in its settings."""
_ADDRESSES = ("url", "httpUrl", "serverUrl")
_TYPES = ("stdio", "http", "streamable-http", "streamableHttp", "streamable_http")
_KNOWN_KEYS = frozenset(("command", "args", "env", "headers", "type", "transport", "disabled", *_ADDRESSES))
_ENVIRONMENT_VARIABLE = re.compile(r"\$\{env:(\w+)\}")
_ANY_VARIABLE = re.compile(r"\$\{[^}]*\}")
_OWN_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True, slots=True)
class ClientServer:
    """One server of another client's file."""

    name: str
    table: Mapping[str, Any]
    left_out: tuple[str, ...]
    """Its keys that have no counterpart here."""


def parse_client_config(text: str, only: str | None = None) -> list[ClientServer]:
    """Every server of the file, in its order; or the one of this name.

    Raises:
        UsageError: it is no such file, or a server of it cannot be used here; the message says which.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is not JSON: {error}") from error
    section: Mapping[str, Any] = {}
    for path in _CLIENT_SECTIONS:
        place = found
        for key in path:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            section = place
            break
    if not section:
        raise UsageError(
            'it contains no servers. Expected: {"mcpServers": {NAME: {"command": ..., "args": [...]}}}'
        )
    if only is not None and only not in section:
        raise UsageError(f"it has no server {only!r}. It has: {', '.join(section)}")
    return [_client_server(name, entry) for name, entry in section.items() if only in (None, name)]


def _client_server(name: str, entry: Any) -> ClientServer:
    if not isinstance(entry, dict):
        raise UsageError(f"server {name!r} should be an object with a command or a url")
    kind = entry.get("type", entry.get("transport", "stdio"))
    if kind not in _TYPES:
        raise UsageError(
            f"server {name!r} has type {kind!r}; only stdio and http (streamable HTTP) are supported. "
            "Import other servers by name: graph-agent mcp add NAME --from FILE"
        )
    table = {key: value for key, value in _converted(name, entry) if value not in (None, [], {})}
    return ClientServer(name, table, tuple(key for key in entry if key not in _KNOWN_KEYS))


def _converted(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    command = entry.get("command")
    # A whole command line in a list is how some write it.
    words = command if isinstance(command, list) else [command] if command is not None else []
    arguments = entry.get("args") or []
    words = [*words, *(arguments if isinstance(arguments, list) else [arguments])]
    yield "command", _word(name, words[0]) if words else None
    yield "args", [_word(name, word) for word in words[1:]]
    yield "env", _variables(name, entry.get("env"))
    yield "url", next((entry[key] for key in _ADDRESSES if entry.get(key)), None)
    yield "headers", _variables(name, entry.get("headers"))
    if entry.get("disabled") is True:
        yield "enabled", False


def _word(name: str, word: Any) -> str:
    """A word of the command line; servers are started in the workspace."""
    text = str(word).replace("${workspaceFolder}", ".").replace("${workspaceRoot}", ".")
    if (found := _ANY_VARIABLE.search(text)) is not None:
        raise UsageError(
            f"server {name!r}: {found[0]} in its command line is not expanded; write the value instead"
        )
    return text


def _variables(name: str, values: Any) -> dict[str, str]:
    """Environment variables or headers, with our spelling of variables in their values."""
    if not isinstance(values, dict):
        return {}
    texts = {
        key: _ENVIRONMENT_VARIABLE.sub(r"${\1}", str(value)) for key, value in values.items() if value is not None
    }
    for key, value in texts.items():
        for variable in _ANY_VARIABLE.findall(value):
            if _OWN_VARIABLE.fullmatch(variable) is None:
                raise UsageError(
                    f"server {name!r}, {key}: {variable} is not supported;  "
                    "use ${NAME} for an environment variable"
                )
    return texts
