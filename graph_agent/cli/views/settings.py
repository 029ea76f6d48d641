"""The `config` commands: settings with their sources, and trust in project folders.

Each raises ConfigError if a config file is invalid or cannot be written, and UsageError if an argument is wrong.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph_agent.app.project_survey import draft_instructions, write_instructions
from graph_agent.app.project_trust import (
    forget_trust,
    project_at,
    project_notices,
    record_trust,
    settings_at,
    trust_effects,
    trusted_effects,
)
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.table import (
    colorize,
    format_columns,
    format_fields,
    print_json,
    print_lines,
    print_result,
    print_text,
    wrap_message,
)
from graph_agent.config.edit import set_value
from graph_agent.config.explain import Explanation, explain, explain_all
from graph_agent.config.model_choice import choose_model
from graph_agent.config.paths import database_path, folder_at, memory_file
from graph_agent.config.project import Project
from graph_agent.config.sources import config_file
from graph_agent.config.trust import trust_file
from graph_agent.errors import ConfigError, UsageError
from graph_agent.wording import escape, format_age

__all__ = [
    "change_setting",
    "current_project",
    "explain_setting",
    "format_trust",
    "init_project",
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


def trust_folder(folder: str | None, *, is_confirmed: bool, as_json: bool) -> None:
    """Show what a folder would enable, and trust it if the user agrees or `is_confirmed`."""
    path = folder_at(folder or ".")
    if path is None:
        raise UsageError(f"{folder!r} is not a folder.")
    project = project_at(path)
    needs_answer = bool(project.files) and not project.is_trusted
    if needs_answer and (is_confirmed or not as_json):
        lines = list(format_trust(project))  # The effects are computed, and can fail, before anything is trusted.
        if not as_json:
            print_lines(lines)
        agrees = is_confirmed or confirm("Trust this folder?", hint="Use --yes to skip the question.")
        project = record_trust(project, trusted=agrees)
    elif not as_json:
        print_lines(format_trust(project))
    if as_json:
        print_json(project_json(project))
    else:
        print_text(f"{project.folder}: {_STATES[project.trust]}")


def revoke_trust(folder: str | None, *, as_json: bool) -> None:
    """Forget the answer about a folder, which may no longer exist."""
    path = Path(folder or ".").expanduser().resolve()
    is_known = forget_trust(path)
    outcome = "Trust revoked; the next chat there asks again" if is_known else "Not trusted; nothing was changed"
    print_result({"folder": str(path), "revoked": is_known}, f"{outcome}: {path}", as_json=as_json)


def list_trusted(*, as_json: bool) -> None:
    """Print the trusted and rejected folders."""
    folders: list[dict[str, Any]] = [
        {"folder": path, "trusted": one.trusted, "at": one.at, "files": dict(one.files)}
        for path, one in trust_file(os.environ).folders().items()
    ]
    table = format_columns(
        folders,
        {
            "FOLDER": lambda one: str(one["folder"]),
            "TRUSTED": lambda one: "yes" if one["trusted"] else "no",
            "SINCE": lambda one: format_age(str(one["at"])),
            "FILES": lambda one: ", ".join(one["files"]),
        },
    )
    print_result({"folders": folders}, table if folders else "No trusted folders.", as_json=as_json)


def format_trust(project: Project) -> Iterator[str]:
    """What trusting a folder enables; `+` marks what was added since it was trusted, `-` what was removed."""
    lines, before = trust_effects(project), trusted_effects(project)
    if project.files or project.gone:
        yield escape(f"{project.folder} contains files that change how the agent works here.")
        named = tuple(line.partition(": ")[0] for line in (*lines, *before))
        others = [(file.name, f"{file.news} since you trusted it" if file.news else "") for file in project.files]
        others += [(name, "no longer used") for name in project.gone]
        for name, news in others:
            if name not in named:  # Of the others their line below says what is new.
                yield escape(f"  {name}{f' ({news})' if news else ''}")
        yield "If you trust the folder, they enable:"
        for line in lines:
            yield escape(f"  {'+ ' if before and line not in before else '  '}{line}")
        yield from (escape(f"  - {line}") for line in before if line not in lines)
    yield from (escape(f"Never used: {name}, {reason}") for name, reason in project.refused.items())


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
        sys.stderr.write(f"{wrap_message(escape(f'note: {notice}'))}\n")


def show_settings(database: str | None = None, *, as_json: bool) -> None:
    """Print every setting."""
    project = current_project()
    settings = explain_all(os.environ, project, database)
    if as_json:
        print_json({"settings": list(map(_setting_json, settings)), "project": project_json(project)})
        return
    print_lines(
        format_columns(
            settings,
            {
                "KEY": lambda one: one.key,
                "FROM": lambda one: f"env {one.origin}" if one.layer == "env" else one.layer,
                "VALUE": lambda one: _format_value(one.value),
            },
            whole="graph-agent config explain KEY",
        )
    )
    print_ignored_files(project)
    model = choose_model(settings_at(Path.cwd()))
    if model.kind == "offline":
        sys.stderr.write(f"{wrap_message(escape(f'note: {model.reason} {model.connect}'))}\n")


def show_paths(*, as_json: bool) -> None:
    """Print the paths of the user's files."""
    files = {"config": config_file, "memory": memory_file, "database": database_path}
    paths = {name: str(find(os.environ)) for name, find in files.items()}
    print_result(paths, format_fields(paths), as_json=as_json)


def change_setting(key: str, value: str, *, as_json: bool) -> None:
    """Set a key in the user's file, and warn if another layer overrides it."""
    path = set_value(key, value, os.environ)
    setting = explain(key, os.environ, current_project())
    print_result({**_setting_json(setting), "path": str(path)}, f"Set {key} in {path}.", as_json=as_json)
    if setting.layer != "user" and not as_json:
        print_text(f"{setting.origin} overrides it: {key} is {_format_value(setting.value)}.")


def explain_setting(key: str, database: str | None = None, *, as_json: bool) -> None:
    """Print one setting with its value in each layer."""
    setting = explain(key, os.environ, current_project(), database)
    layers = [{**asdict(one), "wins": one.layer == setting.layer} for one in setting.layers]
    print_result({**_setting_json(setting), "layers": layers}, _explanation_lines(setting), as_json=as_json)


def _explanation_lines(setting: Explanation) -> Iterator[str]:
    yield colorize(escape(f"{setting.key} = {_format_value(setting.value)}"), "heading")
    yield escape(f"  {setting.description}")
    yield escape(f"  allowed: {setting.allowed}")
    yield "  layers, strongest first:"
    for one in setting.layers:
        value = _format_value(one.value)
        if one.ignored:
            text = f"ignored: {one.ignored}: {value}  ({one.place})"
        elif one.speaks:
            text = f"{value}  ({one.place})" if one.place and one.place not in value else value
        else:
            text = f"not set; {one.place} would set it" if one.place else "cannot be set here"
        yield escape(f"  {'→' if one.layer == setting.layer else ' '} {one.layer:<8} {text}")


def _setting_json(setting: Explanation) -> dict[str, Any]:
    return {name: value for name, value in asdict(setting).items() if name != "layers"}


def _format_value(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def init_project(*, is_printed: bool, is_confirmed: bool, as_json: bool) -> None:
    """Draft the AGENTS.md of the current folder and write or print it; ask before an existing one is replaced."""
    folder = Path.cwd()
    draft = draft_instructions(folder)
    path = folder / "AGENTS.md"
    replaces = is_confirmed
    if not is_printed and not is_confirmed and os.path.lexists(path) and not as_json:
        print_lines(map(escape, draft.text.split("\n")))
        replaces = confirm(f"{path} exists. Replace it with this?", hint="Use --yes to skip the question.")
        if not replaces:
            print_text("Nothing was changed.")
            return
    if not is_printed:
        path = write_instructions(folder, draft.text, replaces=replaces)
    value = {"path": str(path), "written": not is_printed, "sources": list(draft.sources), "text": draft.text}
    shown = draft.text.rstrip().split("\n") if is_printed else [draft.report(path)]
    print_result(value, map(escape, shown), as_json=as_json)
