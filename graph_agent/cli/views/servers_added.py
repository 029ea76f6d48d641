"""`mcp add` and `mcp remove`: what was typed becomes a table of the config file, shown before it is trusted."""

import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graph_agent.app.server_changes import Added, Scope, add_servers, remove_server, trust_added
from graph_agent.app.server_views import ServerView
from graph_agent.cli.escape import escape
from graph_agent.cli.views.consent import agreed
from graph_agent.cli.views.mcp import described
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import labelled
from graph_agent.config.foreign_servers import foreign_servers
from graph_agent.config.plain import plain_text
from graph_agent.errors import UsageError

__all__ = ["Wish", "add", "remove"]

_HOW = (
    "say what starts it, as in: graph-agent mcp add NAME -- COMMAND ARGS; or where it is: --url URL; "
    "or take servers of another client: --from FILE"
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed."""

    name: str | None
    command: tuple[str, ...]
    url: str | None
    env: tuple[str, ...]
    headers: tuple[str, ...]
    source: str | None


def add(wish: Wish, more: Mapping[str, Any], scope: Scope, *, replaces: bool, trusts: bool, as_json: bool) -> None:
    """Write servers down, show them, and trust them if the person, or `trusts`, says so.

    Raises:
        UsageError: what was typed describes no server, or the name is taken.
        ConfigError: the file cannot be read or written.
    """
    given = {key: value for key, value in more.items() if value is not None}
    tables, left_out = _of_file(wish, given) if wish.source else (_typed(wish, given), [])
    added = add_servers(tables, scope, Path.cwd(), replaces=replaces)
    if not as_json:
        _show(added, left_out)
    is_trusted = trusts or (not as_json and _asked(added))
    if is_trusted:
        trust_added(added, Path.cwd())
    if as_json:
        told = [{**asdict(server), "is_trusted": is_trusted or server.is_trusted} for server in added.servers]
        print_json({"path": str(added.path), "servers": told, "left_out": left_out})
    else:
        print_lines(_next(added, is_trusted=is_trusted))


def remove(name: str, scope: Scope, *, as_json: bool) -> None:
    """Take a server out of the configuration.

    Raises:
        UsageError: there is none of this name.
        ConfigError: the file cannot be read or written.
    """
    path = remove_server(name, scope, Path.cwd())
    if as_json:
        print_json({"name": name, "path": str(path), "removed": True})
    else:
        print_lines([escape(f"{name} was taken out of {path} and is not trusted any more")])


def _typed(wish: Wish, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    if wish.name is None or not (wish.command or wish.url):
        raise UsageError(_HOW)
    program, *arguments = wish.command or (None,)
    table = {
        "command": program,
        "args": arguments,
        "env": dict(_pair(text, "--env", passes_on=True) for text in wish.env),
        "url": wish.url,
        "headers": dict(_pair(text, "--header", passes_on=False) for text in wish.headers),
        **given,
    }
    return {wish.name: {key: value for key, value in table.items() if value not in (None, [], {})}}


def _of_file(wish: Wish, given: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    if wish.command or wish.url or wish.env or wish.headers:
        raise UsageError(
            "--from takes the servers as they stand in the file; change them in config.toml afterwards"
        )
    path = Path(wish.source or "").expanduser()
    try:
        found = foreign_servers(plain_text(path), wish.name)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}. Nothing was changed.") from error
    left_out = [f"{server.name}: {', '.join(server.left_out)}" for server in found if server.left_out]
    return {server.name: {**server.table, **given} for server in found}, left_out


def _pair(text: str, option: str, *, passes_on: bool) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign and not passes_on:
        key, sign, value = text.partition(":")
    if not key.strip() or not (sign or passes_on):
        raise UsageError(f"{option} takes NAME=VALUE, this has no {'name' if sign else 'value'}: {text[:20]!r}")
    return key.strip(), value.strip() if sign else f"${{{key.strip()}}}"


def _show(added: Added, left_out: Iterable[str]) -> None:
    for server in added.servers:
        print_lines(labelled({"server": server.name, **described(server), "note": _note(server)}))
    print_lines(escape(f"left out, as it means nothing here: {told}") for told in left_out)
    print_lines([escape(f"written to {added.path}")])


def _note(server: ServerView) -> str:
    if server.problem:
        return server.problem
    if server.fetches_first:
        return (
            f"{server.fetches_first} fetches from the network, which the sandbox keeps closed; --network opens it"
        )
    return ""


def _asked(added: Added) -> bool:
    if added.needs_folder or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    what = "it be started" if len(added.servers) == 1 else "them be started"
    return agreed(f"Let {what} as shown?", otherwise="--trust does without asking")


def _next(added: Added, *, is_trusted: bool) -> list[str]:
    names = [shlex.quote(server.name) for server in added.servers]
    if is_trusted:
        return [escape(f"trusted; try it: graph-agent mcp test {name}") for name in names]
    if added.scope == "project":
        return ["not trusted yet; see what the folder turns on and trust it: graph-agent config trust"]
    return [escape(f"not trusted yet, so that it is not started: graph-agent mcp trust {name}") for name in names]
