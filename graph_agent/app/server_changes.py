"""Adds MCP servers to a config file and takes them out. Starts none; trusts one only where the person says so."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from graph_agent.app.project import answer_trust, forget_trust, project_at, settings_at
from graph_agent.app.server_views import ServerView, server_view, trust_server, withdraw_trust
from graph_agent.config.layers import config_file
from graph_agent.config.load import load_settings
from graph_agent.config.project import PROJECT_CONFIG, Project
from graph_agent.config.server_tables import checked_server, put_servers, take_server
from graph_agent.config.settings import Settings
from graph_agent.errors import UsageError

__all__ = ["Added", "Scope", "add_servers", "remove_server", "trust_added"]

Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Added:
    """Servers that were written into a config file."""

    servers: tuple[ServerView, ...]
    path: Path
    scope: Scope
    needs_folder: bool
    """They are a project's whose folder brings more that nobody trusted: then all of it has to be looked at."""


def add_servers(
    tables: Mapping[str, Mapping[str, Any]], scope: Scope, folder: Path, *, replaces: bool = False
) -> Added:
    """Write servers into the config file of a scope, all or none.

    Raises:
        UsageError: one describes no server, or has a name that is taken, unless `replaces`.
        ConfigError: the file cannot be read or written, or something else in it is wrong.
    """
    servers = {name: checked_server(name, table) for name, table in tables.items()}
    before, path = project_at(folder), _place(scope, folder)
    if scope == "project":
        _require_free(list(servers))
    put_servers(path, tables, replace=replaces, require_fit=_fit(scope, before))
    settings = settings_at(folder)
    views = (replace(server_view(name, server, settings), scope=scope) for name, server in servers.items())
    return Added(tuple(views), path, scope, scope == "project" and before.trust not in ("none", "trusted"))


def trust_added(added: Added, folder: Path) -> None:
    """Let them be started as they are now.

    Raises:
        UsageError: the folder they belong to is to be looked at first.
    """
    if added.needs_folder:
        raise UsageError(
            "the folder brings more than this; see all of it and trust it with: graph-agent config trust"
        )
    if added.scope == "project":
        answer_trust(project_at(folder), trusted=True)
    else:
        for server in added.servers:
            trust_server(server.name)


def remove_server(name: str, scope: Scope, folder: Path) -> Path:
    """Take a server out of the config file of a scope, and back the trust in it; returns the file.

    Raises:
        UsageError: the file has no such server.
        ConfigError: the file cannot be read or written.
    """
    before, path = project_at(folder), _place(scope, folder)
    take_server(path, name)
    if scope == "user":
        withdraw_trust(name)
    elif before.trust == "trusted":
        after = project_at(folder)
        if after.files:
            answer_trust(after, trusted=True)  # What is left was trusted before.
        else:
            forget_trust(after.folder)
    return path


def _fit(scope: Scope, project: Project) -> Callable[[str], Settings]:
    """Tells a fault beside the servers before anything is written; one in what is replaced is mended by that."""
    if scope == "user":
        return lambda text: load_settings(os.environ, project=project, user_text=text)
    return lambda text: load_settings(os.environ, project=project.with_config(text))


def _place(scope: Scope, folder: Path) -> Path:
    if scope == "user":
        return config_file(os.environ)
    root = folder.resolve()
    path = root / PROJECT_CONFIG
    if not path.resolve().is_relative_to(root):
        raise UsageError(f"{path} leads to {path.resolve()}, out of the folder; nothing was changed")
    return path


def _require_free(names: list[str]) -> None:
    own = load_settings(os.environ).mcp_servers
    taken = [name for name in names if name in own]
    if taken:
        raise UsageError(f"you have a server {taken[0]!r} of your own, which goes first; take another name")
