"""Brings the tools of others into a registry: packages, lines of the settings, the user's folder, trusted projects.

A plug-in that cannot be used is told in one line and keeps nothing from starting.
"""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from graph_agent.app.tooling import default_registry
from graph_agent.config.paths import config_dir
from graph_agent.config.plain import plain_text
from graph_agent.config.settings import Settings
from tools.base import BaseTool, ToolContext
from tools.plugins import Found, PluginTool, Source, from_entry_points, from_line, from_text, load
from tools.registry import Factory, ToolRegistry

__all__ = ["USER_TOOLS", "full_registry", "tools_folder"]

USER_TOOLS = "tools"
"""Folder beside config.toml whose `*.py` files hold tools of the user's own."""

_log = logging.getLogger(__name__)

_PATIENCE_S = 10.0
"""How long a plug-in may take until it has given its tools; one that hangs would keep the agent from starting."""


def tools_folder(env: Mapping[str, str]) -> Path:
    """Where the user's own tools lie."""
    return config_dir(env) / USER_TOOLS


def full_registry(workspace: Path, settings: Settings) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Every tool there is in this workspace, and a line for each plug-in, or tool of one, that cannot be used.

    Imports the plug-ins, which may take seconds: not for the event loop.
    """
    registry = default_registry(workspace, settings)
    problems: list[str] = []
    for source in _sources(settings, problems):
        found = _given_in_time(source, workspace)
        problems += found.problems
        problems += [wrong for tool in found.tools if (wrong := _registered(registry, tool, source.place))]
    return registry, tuple(problems)


def _given_in_time(source: Source, workspace: Path) -> Found:
    given: list[Found] = []
    # A thread of its own, that the end of the process does not wait for.
    loading = threading.Thread(target=lambda: given.append(_given(source, workspace)), daemon=True)
    # What it prints must not get between lines that programs read.
    with contextlib.redirect_stdout(sys.stderr):
        loading.start()
        loading.join(_PATIENCE_S)
    late = Found(problems=(f"{source.place}: it did not give its tools within {_PATIENCE_S:g} s",))
    return given[0] if given else late


def _given(source: Source, workspace: Path) -> Found:
    try:
        return load(source, workspace)
    # In a thread of its own no Ctrl-C arrives: whatever comes here, the plug-in raised it.
    except BaseException as error:  # noqa: BLE001 - the one boundary between plug-ins' bugs and the start
        # Below the level that reaches a terminal where no log is set up: the line tells the user what matters.
        _log.info("a plug-in cannot be used: %s", source.place, exc_info=True)
        return Found(problems=(f"{source.place}: {type(error).__name__}: {_said(error)}",))


def _said(error: BaseException) -> str:
    try:
        return " ".join(str(error).split()) or "it says no more"
    except Exception:  # noqa: BLE001 - its text is the plug-in's own code as well
        return "it cannot say why"


def _sources(settings: Settings, problems: list[str]) -> Iterator[Source]:
    """In this order, which is also that in which a model is offered them."""
    yield from from_entry_points()
    yield from map(from_line, settings.tools)
    for path in _own_files():
        try:
            text = plain_text(path)
        except (OSError, ValueError) as error:
            problems.append(f"{path}: it cannot be read: {error}")
        else:
            yield from_text(str(path), text)
    for place, text in settings.project_tools:
        yield from_text(place, text)


def _own_files() -> list[Path]:
    folder = tools_folder(os.environ)
    return sorted(path for path in folder.glob("*.py") if path.name[0] not in "._")


def _registered(registry: ToolRegistry, plugin: PluginTool, place: str) -> str:
    """Why the tool cannot be taken in; empty when it was."""
    try:
        registry.register_factory(plugin.tool.name, _factory(plugin), origin="plugin", prototype=plugin.tool)
    except ValueError as error:
        return f"{place}: {str(error).rstrip('.')}"
    return ""


def _factory(plugin: PluginTool) -> Factory:
    def fresh(_: ToolContext | None) -> BaseTool:
        return plugin.make()

    return fresh
