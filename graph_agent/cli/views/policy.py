"""The `policy` commands: the decision for a call, tests with labelled cases, rules and saved permissions.

Each raises ConfigError if a setting is invalid, and UsageError if an argument is wrong.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from graph_agent.app.approvals import revoke_grant
from graph_agent.app.policy import Report, check_policy, effective_rules, run_policy_cases
from graph_agent.app.project_trust import settings_at
from graph_agent.app.toolset import unenforced_rules
from graph_agent.cli.views.approvals import parse_object
from graph_agent.cli.views.format import read_list
from graph_agent.cli.views.settings import current_project, print_ignored_files
from graph_agent.cli.views.table import (
    colorize,
    command_hint,
    format_columns,
    print_json,
    print_lines,
    print_result,
    print_text,
)
from graph_agent.config.paths import folder_at, own_command
from graph_agent.errors import UsageError
from graph_agent.inspect.calls import author_words
from graph_agent.ports import Grant, rules_with_folders
from graph_agent.wording import escape, format_age

__all__ = ["check_call", "list_policy", "revoke_permission", "run_cases", "show_policy"]

_EXIT_CODES = {"allow": 0, "ask": 3, "deny": 4}
_NAMES = {"allow": "permission", "deny": "denial"}
"""What a saved rule is called."""
_OPTIONAL_KEYS = ("problems", "allowed_in", "note")
"""Keys of a report that the JSON contains only if they have a value."""


def list_policy(database: Path, *, as_json: bool) -> None:
    """Print the configured rules and the saved permissions."""
    settings = settings_at(Path.cwd(), {"database": database})
    configured = [rule for rule in effective_rules(settings) if rule.list]
    grants = _read_grants(database)
    rules = [{"list": rule.list, "rule": rule.rule, "source": rule.source} for rule in configured]
    result = {"rules": rules, "grants": list(map(_grant_json, grants))}
    print_result(result, _list_lines(rules, grants), as_json=as_json)


def _list_lines(rules: Sequence[Mapping[str, str]], grants: Sequence[Grant]) -> Iterator[str]:
    for rule in rules:
        yield escape(f"{rule['list']:<5}  {rule['rule']}  ({rule['source']})")
    if rules and grants:
        yield ""
    for grant in grants:
        scope = {"thread": f"in thread {grant.thread_id}", "project": f"in {grant.workspace}", "user": "everywhere"}
        folder = "" if grant.folders or grant.folder == "." else f", from folder {grant.folder}"
        where = (
            f"{folder}, in mode {grant.mode} and more permissive ones"
            if grant.effect == "allow"
            else ", in every mode"
        )
        title = f"{_NAMES[grant.effect]} {grant.id}  {scope[grant.scope]}{where}"
        yield colorize(escape(title), "heading")
        yield from _rule_lines(grant)
        yield escape(f"  given {format_age(grant.at)} by {author_words(grant.by)}, with call {grant.call_id}")
    if grants:
        yield f"Revoke one with: {command_hint('policy revoke ID', '/policy revoke ID')}"
    elif not rules:
        yield "No rules and no saved permissions."


def revoke_permission(database: Path, text: str, *, as_json: bool) -> None:
    """Revoke a saved permission and print it.

    Raises:
        UnknownId: there is no such permission.
    """
    grant = asyncio.run(revoke_grant(database, text, by=f"cli pid {os.getpid()}"))
    lines = [f"Revoked {_NAMES[grant.effect]} {grant.id}:", *_rule_lines(grant)]
    print_result({"revoked": _grant_json(grant)}, lines, as_json=as_json)


def _read_grants(database: Path, workspace: Path | None = None, *, of_threads: bool = True) -> list[Grant]:
    """The saved permissions; with a folder, those that apply in it, to one thread only with `of_threads`."""
    grants = read_list(database, lambda reader: reader.grants())
    return [
        grant
        for grant in grants
        if workspace is None
        or grant.scope == "user"
        or (grant.workspace == str(workspace) and (grant.scope == "project" or of_threads))
    ]


def _grant_json(grant: Grant) -> dict[str, Any]:
    lists = {"rules": list(grant.rules), "prefixes": list(grant.prefixes)}
    return {**asdict(grant), **lists, "folders": list(map(list, grant.folders))}


def _rule_lines(grant: Grant) -> Iterator[str]:
    yield from (escape(f"  │ {rule}") for rule in rules_with_folders(grant))


def check_call(
    database: Path, tool: str, arguments: str, *, mode: str | None, workspace: str | None, as_json: bool
) -> None:
    """Print the decision for a call. Exit code: 0 allow, 3 ask, 4 deny."""
    is_json = arguments.lstrip().startswith("{")
    given, folder = parse_object(arguments, "JSON") if is_json else arguments, folder_at(workspace or ".")
    if folder is None:
        raise UsageError(f"--workspace {workspace!r} is not a folder.")
    settings = settings_at(folder, {"mode": mode})
    report = asyncio.run(check_policy(tool, given, settings, folder, _read_grants(database, folder)))
    result = {key: value for key, value in asdict(report).items() if key not in _OPTIONAL_KEYS or value}
    print_result(result, map(escape, _report_lines(report)), as_json=as_json)
    raise typer.Exit(_EXIT_CODES[report.decision])


def _report_lines(report: Report) -> Iterator[str]:
    yield f"decision: {report.decision}"
    yield f"rule:     {report.rule}"
    yield f"reason:   {report.reason}"
    parsed = report.parsed
    if parsed.get("risk_reason"):
        yield f"risk:     {parsed['risk']}: it {parsed['risk_reason']}"
    elif parsed:
        yield f"risk:     {parsed['risk']}"
    for title, key in (("runs", "commands"), ("would also run", "also_runs")):
        yield from (f"{title}: {text}" for text in parsed.get(key, ()))
    for name, row in parsed.get("programs", {}).items():
        yield f"program {name}: {row}"
    for path in (*parsed.get("writes", ()), *parsed.get("paths", ())):
        where = "inside" if path["inside"] else "outside"
        yield f"{path['access']}s: {path['resolved']} ({where} the workspace)"
    if reason := parsed.get("not_plain_because"):
        yield f"No rule can allow it: {reason}"
    if report.note:
        yield report.note
    for thread_id in report.allowed_in:
        yield f"Allowed by a saved permission of thread {thread_id}; see {own_command()} policy list"
    yield from (f"! Not available: {problem}" for problem in report.problems)


def show_policy(database: Path, mode: str | None, *, as_json: bool) -> None:
    """Print all rules in the order of evaluation."""
    settings = settings_at(Path.cwd(), {"mode": mode})
    print_ignored_files(current_project())
    rules = effective_rules(settings, _read_grants(database, Path.cwd(), of_threads=False))
    columns = {
        "LIST": lambda rule: rule.list or "-",
        "FROM": lambda rule: rule.source,
        "RULE": lambda rule: rule.rule,
    }
    unenforced = unenforced_rules(settings, Path.cwd())
    lines = [f"mode: {settings.mode}", "", *format_columns(rules, columns)]
    lines += [escape(f"! A command may get past deny {rule}: {reason}") for rule, reason in unenforced]
    result = {
        "mode": settings.mode,
        "rules": list(map(asdict, rules)),
        "unenforced": [{"rule": rule, "reason": reason} for rule, reason in unenforced],
    }
    print_result(result, lines, as_json=as_json)


def run_cases(file: str, *, as_json: bool) -> None:
    """Print the cases that are decided unlike their label, and totals. Exit code 1 if one is more permissive.

    Raises:
        UsageError: the file cannot be read, or a line is not a case.
    """
    cases, score = run_policy_cases(Path(file))
    if as_json:
        print_json({"cases": list(map(asdict, cases)), "score": asdict(score)})
    else:
        for one in cases:
            if not one.is_right:
                word = "LOOSER" if one.is_looser else "stricter"
                print_text(f"{word}: {one.id}: {one.decision}, expected {one.expected}; {one.rule}: {one.reason}")
        total = {"right": score.right, "stricter": score.stricter, "looser": score.looser}
        columns = {
            "FAMILY": lambda row: row[0],
            "RIGHT": lambda row: str(row[1]["right"]),
            "STRICTER": lambda row: str(row[1]["stricter"]),
            "LOOSER": lambda row: str(row[1]["looser"]),
        }
        print_lines(format_columns([*score.families.items(), ("all", total)], columns))
    if score.looser:
        raise typer.Exit(1)
