"""`config`: the settings as a table, one with all its layers, and what came of setting one."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import colored, print_json, print_lines
from graph_agent.cli.views.table import labelled, table
from graph_agent.cli.views.trust import project_here, project_json, tell_ignored
from graph_agent.config.change import set_value
from graph_agent.config.explain import Explanation, Said, explain, explain_all
from graph_agent.config.layers import config_file
from graph_agent.config.paths import database_path, memory_file

__all__ = ["change_setting", "explain_setting", "show_paths", "show_settings"]


def show_settings(database: str | None = None, *, as_json: bool) -> None:
    """Print every setting.

    Raises:
        ConfigError: one is wrong.
    """
    project = project_here()
    settings = explain_all(os.environ, project, database)
    if as_json:
        told = [_setting_json(setting) for setting in settings]
        print_json({"settings": told, "project": project_json(project)})
    else:
        rows = [(setting.key, _source(setting), _text(setting.value)) for setting in settings]
        print_lines(table(("KEY", "FROM", "VALUE"), rows))
        tell_ignored(project)


def show_paths(*, as_json: bool) -> None:
    """Print the places of the user's own files."""
    places = {
        "config": config_file(os.environ),
        "memory": memory_file(os.environ),
        "database": database_path(os.environ),
    }
    if as_json:
        print_json({name: str(path) for name, path in places.items()})
    else:
        print_lines(labelled({name: str(path) for name, path in places.items()}))


def change_setting(key: str, value: str, *, as_json: bool) -> None:
    """Set a key and say what holds now: a variable may go before the file.

    Raises:
        UsageError: there is no such key.
        ConfigError: the value does not fit.
    """
    path = set_value(key, value, os.environ)
    setting = explain(key, os.environ, project_here())
    if as_json:
        print_json({**_setting_json(setting), "path": str(path)})
        return
    print_lines([escape(f"{path}: {key} is set")])
    if setting.layer != "user":
        print_lines([escape(f"but {setting.origin} goes before it: {key} is {_text(setting.value)}")])


def explain_setting(key: str, database: str | None = None, *, as_json: bool) -> None:
    """Print one setting with what each layer says.

    Raises:
        UsageError: there is no such key.
        ConfigError: a setting is wrong.
    """
    setting = explain(key, os.environ, project_here(), database)
    if as_json:
        layers = [{**asdict(one), "wins": one.layer == setting.layer} for one in setting.layers]
        print_json({**_setting_json(setting), "layers": layers})
    else:
        print_lines(_explanation(setting))


def _explanation(setting: Explanation) -> Iterator[str]:
    yield colored(escape(f"{setting.key} = {_text(setting.value)}"), "heading")
    yield escape(f"  {setting.description}")
    yield escape(f"  takes: {setting.allowed}")
    yield "  layers, strongest first:"
    for one in setting.layers:
        yield escape(f"  {'→' if one.layer == setting.layer else ' '} {one.layer:<8} {_said(one)}")


def _said(one: Said) -> str:
    if one.ignored:
        return f"ignored: {one.ignored}: {_text(one.value)}  ({one.place})"
    if one.speaks:
        text = _text(one.value)
        return f"{text}  ({one.place})" if one.place and one.place not in text else text
    return f"nothing; {one.place} would" if one.place else "cannot be set here"


def _setting_json(setting: Explanation) -> dict[str, Any]:
    facts = asdict(setting)
    facts.pop("layers")
    return facts


def _source(setting: Explanation) -> str:
    return f"{setting.layer} {setting.origin}" if setting.layer == "env" else setting.layer


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
