"""Tables of MCP servers in a config.toml: put in and taken out, with everything else left as it was.

Reads the MCP servers of other clients' JSON files as tables of ours; what has no counterpart is named.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import ValidationError
from tomlkit.items import Table

from graph_agent.config.edit import change_document, parsed_document
from graph_agent.config.settings import McpServer
from graph_agent.errors import ConfigError, UsageError

__all__ = ["ClientServer", "delete_server_table", "parse_client_config", "validate_server", "write_server_tables"]

_SECTION = "mcp_servers"


def validate_server(name: str, table: Mapping[str, Any]) -> McpServer:
    """The server that a table describes.

    Raises:
        UsageError: it describes none; the message holds no value, which may be a secret.
    """
    if not name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is no name for a server; take letters and digits, e.g. tickets")
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
    require_fit: Callable[[str], object] = lambda _: None,
) -> None:
    """Write the tables into a config file, all or none; `require_fit` sees the whole text before it is written.

    Raises:
        UsageError: one has a name that is there already, and `replace` was not said.
        ConfigError: the file cannot be read or written; whatever `require_fit` raises.
    """

    def changed(before: str) -> str:
        standing = _standing(before)
        taken = [name for name in tables if name in standing]
        if taken and not replace:
            raise UsageError(
                f"{path} has a server {', '.join(map(repr, taken))} already; take another name, or --replace"
            )
        text = _certain(path, _with(before, tables, taken), _expected(before, {**standing, **tables}))
        require_fit(text)
        return text

    change_document(path, changed)


def delete_server_table(path: Path, name: str) -> None:
    """Take a server's table out of a config file.

    Raises:
        UsageError: the file has none of this name.
        ConfigError: the file cannot be read or written.
    """

    def changed(before: str) -> str:
        standing = _standing(before)
        if name not in standing:
            raise UsageError(f"{path} has no MCP server {name!r}; it has: {', '.join(standing) or 'none'}")
        left = {one: table for one, table in standing.items() if one != name}
        return _certain(path, _without(before, [name]), _expected(before, left))

    change_document(path, changed)


def _standing(text: str) -> dict[str, Any]:
    found = parsed_document(text).unwrap().get(_SECTION, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{_SECTION} = {found!r} should be a table of servers. Nothing was changed.")
    return found


def _with(before: str, tables: Mapping[str, Mapping[str, Any]], taken: list[str]) -> str:
    kept = _without(before, taken)
    added = "\n".join(_lines(name, table) for name, table in tables.items())
    appended = f"{kept.rstrip()}\n\n{added}" if kept.strip() else added
    try:
        tomllib.loads(appended)
    except ValueError:
        # The section is written in one line, which no table can be added to from outside.
        document: Any = parsed_document(kept)
        for name, table in tables.items():
            document[_SECTION][name] = _inline(table)
        return tomlkit.dumps(document)
    return appended


def _without(text: str, names: list[str]) -> str:
    if not names:
        return text
    left = _without_lines(text, names)
    remaining = {name: table for name, table in _standing(text).items() if name not in names}
    if not _reads_as(left, _expected(text, remaining)):
        document: Any = parsed_document(text)
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
    drops = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("[") and (heads := _named(line)) is not None:
            kept += _comments_after(dropped)
            dropped, drops = [], heads in names
        (dropped if drops else kept).append(line)
    return "".join([*kept, *_comments_after(dropped)])


def _named(heading: str) -> str | None:
    """The server that a heading begins a table of, empty where it is of something else; None: it is no heading."""
    try:
        found = tomllib.loads(heading).get(_SECTION, {})
    except ValueError:
        return None
    return next(iter(found), "") if isinstance(found, dict) else ""


def _comments_after(lines: list[str]) -> list[str]:
    content = [number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in lines[content[-1] + 1 :] if line.strip()] if content else []


def _certain(path: Path, text: str, expected: Mapping[str, Any]) -> str:
    if not _reads_as(text, expected):
        raise ConfigError(f"{path} is laid out so that it can only be changed by hand. Nothing was changed.")
    return text


def _expected(before: str, servers: Mapping[str, Any]) -> dict[str, Any]:
    """All that the text says, with these servers in the place of its own."""
    rest = {key: value for key, value in parsed_document(before).unwrap().items() if key != _SECTION}
    return {**rest, _SECTION: dict(servers)} if servers else rest


def _reads_as(text: str, expected: Mapping[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except ValueError:
        return False
    return {key: value for key, value in found.items() if key != _SECTION or value} == expected


def _lines(name: str, table: Mapping[str, Any]) -> str:
    document, section, own = tomlkit.document(), tomlkit.table(is_super_table=True), tomlkit.table()
    _filled(own, table)
    section.append(name, own)
    document.append(_SECTION, section)
    return tomlkit.dumps(document)


def _filled(own: Table, table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        own.append(key, _inline(value) if isinstance(value, Mapping) else value)


def _inline(table: Mapping[str, Any]) -> Any:
    inline = tomlkit.inline_table()
    for key, value in table.items():
        inline.append(key, _inline(value) if isinstance(value, Mapping) else value)
    return inline


_SECTIONS = (("mcpServers",), ("servers",), ("mcp", "servers"))
"""Where clients keep them: most of them, VS Code in a file of its own, VS Code in its settings."""
_ADDRESSES = ("url", "httpUrl", "serverUrl")
_KINDS = ("stdio", "http", "streamable-http", "streamableHttp", "streamable_http")
_OF_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}")
_UNKNOWN_VARIABLE = re.compile(r"\$\{[^}]*\}")
_OWN_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_WORKSPACE = ("${workspaceFolder}", "${workspaceRoot}")


@dataclass(frozen=True, slots=True)
class ClientServer:
    """One server of such a file."""

    name: str
    table: Mapping[str, Any]
    left_out: tuple[str, ...]
    """Its keys that mean nothing here."""


def parse_client_config(text: str, only: str | None = None) -> list[ClientServer]:
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


def _server(name: str, entry: Any) -> ClientServer:
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
    return ClientServer(name, table, tuple(key for key in entry if key not in known))


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
    texts = {key: _OF_ENVIRONMENT.sub(r"${\1}", str(value)) for key, value in values.items() if value is not None}
    for key, value in texts.items():
        _require_known(f"server {name!r}, {key}", _UNKNOWN_VARIABLE.findall(value))
    return texts


def _require_known(place: str, variables: Sequence[str]) -> None:
    for variable in variables:
        if _OWN_VARIABLE.fullmatch(variable) is None:
            raise UsageError(f"{place}: {variable} is not known here; write ${{NAME}} for an environment variable")
