"""`policy check` and `policy show`: a decision with its reasons, and what decides."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from graph_agent.app.policing import Report, effective_rules, report_on
from graph_agent.app.project import settings_at
from graph_agent.cli.escape import escape
from graph_agent.cli.views.grants import grants_holding
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import table
from graph_agent.cli.views.trust import project_here, tell_ignored
from graph_agent.errors import UsageError

__all__ = ["check", "show"]

_EXITS = {"allow": 0, "ask": 3, "deny": 4}


def check(
    database: Path, tool: str, arguments: str, *, mode: str | None, workspace: str | None, as_json: bool
) -> None:
    """Print what policy says to the call; exit 0 allow, 3 ask, 4 deny.

    Raises:
        UsageError: the arguments are no JSON object, or not what the tool takes, or the folder is none.
        ConfigError: a setting is wrong.
    """
    given, folder = _object(arguments), _folder(workspace)
    settings = settings_at(folder, {"mode": mode})
    grants = grants_holding(database, folder, of_threads=True)
    report = asyncio.run(report_on(tool, given, settings, folder, grants))
    if as_json:
        # These two are keys only where they say something: the others are what scripts go by.
        rare = ("problems", "allowed_in")
        print_json({key: value for key, value in asdict(report).items() if key not in rare or value})
    else:
        print_lines(list(map(escape, _lines(report))))
    raise typer.Exit(_EXITS[report.decision])


def show(database: Path, mode: str | None, *, as_json: bool) -> None:
    """Print what judges, first what speaks first.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd(), {"mode": mode})
    tell_ignored(project_here())
    rules = effective_rules(settings, grants_holding(database, Path.cwd()))
    if as_json:
        print_json({"mode": settings.mode, "rules": [asdict(rule) for rule in rules]})
        return
    print_lines([f"mode: {settings.mode}", ""])
    print_lines(table(("LIST", "FROM", "RULE"), [(one.list or "-", one.source, one.rule) for one in rules]))


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f'{text!r} is no JSON: {error}; write {{"command": "git status"}}, say') from error
    if not isinstance(value, dict):
        raise UsageError(f'{text!r} is no JSON object; write {{"command": "git status"}}, say')
    return value


def _folder(text: str | None) -> Path:
    folder = Path(text or ".").expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"--workspace {text!r} is not a folder; name one that exists")
    return folder


def _lines(report: Report) -> Iterator[str]:
    yield f"decision: {report.decision}"
    yield f"rule:     {report.rule}"
    yield f"reason:   {report.reason}"
    parsed = report.parsed
    for title, key in (("runs", "commands"), ("would also run", "also_runs")):
        for text in parsed.get(key, ()):
            yield f"{title}: {text}"
    for path in (*parsed.get("writes", ()), *parsed.get("paths", ())):
        where = "inside" if path["inside"] else "outside"
        yield f"{path['access']}s: {path['resolved']} ({where} the workspace)"
    if why := parsed.get("not_plain_because"):
        yield f"no rule can allow it: {why}"
    for thread_id in report.allowed_in:
        yield f"allowed always in thread {thread_id}: graph-agent policy list"
    yield from (f"! left out: {problem}" for problem in report.problems)
