"""The `config` commands: settings with their sources, and trust in project folders."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph_agent.app.project_trust import (
    forget_trust,
    project_at,
    project_notices,
    record_trust,
    trust_effects,
    trusted_effects,
)
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.table import colorize, format_fields, format_table, format_time, print_json, print_lines
from graph_agent.config.edit import set_value
from graph_agent.config.explain import Explanation, LayerValue, explain, explain_all
from graph_agent.config.paths import database_path, memory_file
from graph_agent.config.project import Project
from graph_agent.config.sources import config_file
from graph_agent.config.trust import trust_file
from graph_agent.errors import ConfigError, UsageError

__all__ = [
    "change_setting",
    "current_project",
    "explain_setting",
    "format_trust",
    "list_trusted",
    "print_ignored_files",
    "project_json",
    "revoke_trust",
    "show_paths",
    "show_settings",
    "trust_folder",
]

_STATES = {
    "none": "no files that need trust",
    "trusted": "trusted",
    "once": "trusted for this process",
    "untrusted": "not trusted",
    "changed": "not trusted: it changed since you trusted it",
    "declined": "not trusted: you rejected it",
}


def current_project() -> Project:
    """The project of the current folder."""
    return project_at(Path.cwd())


def trust_folder(folder: str | None, *, is_settled: bool, as_json: bool) -> None:
    """Show what a folder would enable, and trust it if the user agrees or `is_settled`.

    Raises:
        UsageError: the folder does not exist, or stdin ended.
        ConfigError: its settings are invalid.
    """
    project = project_at(_folder(folder))
    if project.files and not project.is_trusted:
        project = _asked(project, is_settled=is_settled, as_json=as_json)
    elif not as_json:
        print_lines(format_trust(project))
    if as_json:
        print_json(project_json(project))
    else:
        print_lines([escape(f"{project.folder}: {_STATES[project.trust]}")])


def revoke_trust(folder: str | None, *, as_json: bool) -> None:
    """Forget the answer about a folder, which may no longer exist."""
    path = Path(folder or ".").expanduser().resolve()
    known = forget_trust(path)
    if as_json:
        print_json({"folder": str(path), "revoked": known})
    else:
        result = "Trust revoked; the next chat there asks again" if known else "Not trusted; nothing was changed"
        print_lines([escape(f"{result}: {path}")])


def list_trusted(*, as_json: bool) -> None:
    """Print the trusted and rejected folders."""
    folders = trust_file(os.environ).folders()
    if as_json:
        shown = [
            {"folder": path, "trusted": one.trusted, "at": one.at, "files": dict(one.files)}
            for path, one in folders.items()
        ]
        print_json({"folders": shown})
    elif not folders:
        print_lines(["No trusted folders."])
    else:
        rows = [
            (path, "yes" if one.trusted else "no", format_time(one.at), ", ".join(one.files))
            for path, one in folders.items()
        ]
        print_lines(format_table(("FOLDER", "TRUSTED", "SINCE", "FILES"), rows))


def format_trust(project: Project) -> Iterator[str]:
    """What trusting a folder enables; `+` marks what was added since it was trusted, `-` what was removed.

    Raises:
        ConfigError: its settings are invalid.
    """
    lines, before = trust_effects(project), trusted_effects(project)
    if project.files or project.gone:
        yield escape(f"{project.folder} contains files that change how the agent works here:")
        for file in project.files:
            yield escape(f"  {file.name}{f' ({file.news} since you trusted it)' if file.news else ''}")
        yield from (escape(f"  {name} (deleted since you trusted it)") for name in project.gone)
        yield "If you trust the folder, they enable:"
        for line in lines:
            mark = "+ " if before and line not in before else "  "
            yield escape(f"  {mark}{line}", multiline=False)
        yield from (escape(f"  - {line}") for line in before if line not in lines)
    for name, reason in project.refused.items():
        yield escape(f"Never used: {name}, {reason}")


def project_json(project: Project) -> dict[str, Any]:
    """A project folder in the JSON shape of `config trust`."""
    try:
        lines = list(trust_effects(project)) if project.files else []
    except ConfigError as error:
        lines = [str(error)]
    return {
        "folder": str(project.folder),
        "trust": project.trust,
        "counts": project.is_trusted,
        "files": [{"name": file.name, "sha256": file.sha256, "news": file.news} for file in project.files],
        "refused": dict(project.refused),
        "turns_on": lines,
    }


def print_ignored_files(project: Project) -> None:
    """Print on stderr which files of the folder are ignored."""
    for notice in project_notices(project):
        sys.stderr.write(f"note: {escape(notice)}\n")


def _asked(project: Project, *, is_settled: bool, as_json: bool) -> Project:
    if as_json and not is_settled:
        return project
    lines = list(format_trust(project))
    if not as_json:
        print_lines(lines)
    if is_settled or confirm("Trust this folder?", hint="Use --yes to skip the question."):
        return record_trust(project, trusted=True)
    return record_trust(project, trusted=False)


def _folder(text: str | None) -> Path:
    folder = Path(text or ".").expanduser()
    if not folder.is_dir():
        raise UsageError(f"{text!r} is not a folder.")
    return folder


def show_settings(database: str | None = None, *, as_json: bool) -> None:
    """Print every setting.

    Raises:
        ConfigError: one is invalid.
    """
    project = current_project()
    settings = explain_all(os.environ, project, database)
    if as_json:
        told = [_setting_json(setting) for setting in settings]
        print_json({"settings": told, "project": project_json(project)})
    else:
        rows = [(setting.key, _source(setting), _text(setting.value)) for setting in settings]
        print_lines(format_table(("KEY", "FROM", "VALUE"), rows))
        print_ignored_files(project)


def show_paths(*, as_json: bool) -> None:
    """Print the paths of the user's files."""
    places = {
        "config": config_file(os.environ),
        "memory": memory_file(os.environ),
        "database": database_path(os.environ),
    }
    if as_json:
        print_json({name: str(path) for name, path in places.items()})
    else:
        print_lines(format_fields({name: str(path) for name, path in places.items()}))


def change_setting(key: str, value: str, *, as_json: bool) -> None:
    """Set a key in the user's file, and warn if another layer overrides it.

    Raises:
        UsageError: the key is unknown.
        ConfigError: the value is invalid.
    """
    path = set_value(key, value, os.environ)
    setting = explain(key, os.environ, current_project())
    if as_json:
        print_json({**_setting_json(setting), "path": str(path)})
        return
    print_lines([escape(f"Set {key} in {path}.")])
    if setting.layer != "user":
        print_lines([escape(f"{setting.origin} overrides it: {key} is {_text(setting.value)}.")])


def explain_setting(key: str, database: str | None = None, *, as_json: bool) -> None:
    """Print one setting with its value in each layer.

    Raises:
        UsageError: the key is unknown.
        ConfigError: a setting is invalid.
    """
    setting = explain(key, os.environ, current_project(), database)
    if as_json:
        layers = [{**asdict(one), "wins": one.layer == setting.layer} for one in setting.layers]
        print_json({**_setting_json(setting), "layers": layers})
    else:
        print_lines(_explanation(setting))


def _explanation(setting: Explanation) -> Iterator[str]:
    yield colorize(escape(f"{setting.key} = {_text(setting.value)}"), "heading")
    yield escape(f"  {setting.description}")
    yield escape(f"  allowed: {setting.allowed}")
    yield "  layers, strongest first:"
    for one in setting.layers:
        yield escape(f"  {'→' if one.layer == setting.layer else ' '} {one.layer:<8} {_said(one)}")


def _said(one: LayerValue) -> str:
    if one.ignored:
        return f"ignored: {one.ignored}: {_text(one.value)}  ({one.place})"
    if one.speaks:
        text = _text(one.value)
        return f"{text}  ({one.place})" if one.place and one.place not in text else text
    return f"not set; {one.place} would set it" if one.place else "cannot be set here"


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
