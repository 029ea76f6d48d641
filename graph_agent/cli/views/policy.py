"""`policy check` and `policy show`: a decision with its reasons, and what decides.

`policy test`: labelled cases and how they were decided, as lines and as JSON.

`policy list` and `policy revoke`: the rules there are, what was allowed always, and what came of revoking.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from graph_agent.app.approvals import revoke_grant
from graph_agent.app.policy import Report, Score, Scored, effective_rules, report_on, score_file
from graph_agent.app.project_trust import settings_at
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.settings import current_project, print_ignored_files
from graph_agent.cli.views.table import colorize, format_table, format_time, print_json, print_lines
from graph_agent.errors import NothingYet, UsageError
from graph_agent.inspect import Reader
from graph_agent.ports import Grant

__all__ = ["applicable_grants", "check_call", "list_policy", "revoke_permission", "run_cases", "show_policy"]


def list_policy(database: Path, *, as_json: bool) -> None:
    """Print the rules of the config and every grant that stands."""
    settings = settings_at(Path.cwd(), {"database": str(database)})
    rules = [
        {"list": rule.list, "rule": rule.rule, "source": rule.source}
        for rule in effective_rules(settings)
        if rule.list
    ]
    grants = _grants(database)
    if as_json:
        print_json({"rules": rules, "grants": [_grant_json(grant) for grant in grants]})
    else:
        print_lines(_lines_grants(rules, grants))


def revoke_permission(database: Path, text: str, *, as_json: bool) -> None:
    """Take a grant back and tell which one it was.

    Raises:
        UnknownId: no such grant stands.
    """
    grant = asyncio.run(revoke_grant(database, text, by=f"cli pid {os.getpid()}"))
    if as_json:
        print_json({"revoked": _grant_json(grant)})
    else:
        print_lines([f"revoked: grant {grant.id}", *_rule_lines(grant)])


def _grant_json(grant: Grant) -> dict[str, Any]:
    """The grant as scripts get it."""
    return {**asdict(grant), "rules": list(grant.rules)}


def applicable_grants(database: Path, workspace: Path, *, of_threads: bool = False) -> list[Grant]:
    """What was allowed always and holds in each thread of the folder; of single ones only if wanted."""
    return [
        grant
        for grant in _grants(database)
        if grant.scope == "user" or (grant.workspace == str(workspace) and (grant.scope == "project" or of_threads))
    ]


def _grants(database: Path) -> list[Grant]:
    try:
        with Reader.open(database) as reader:
            return reader.grants()
    except NothingYet:
        return []


def _lines_grants(rules: Sequence[dict[str, str]], grants: Sequence[Grant]) -> Iterator[str]:
    for rule in rules:
        yield escape(f"{rule['list']:<5}  {rule['rule']}  ({rule['source']})")
    if rules and grants:
        yield ""
    for grant in grants:
        where = {"thread": f"in thread {grant.thread_id}", "project": f"in {grant.workspace}", "user": "everywhere"}
        place = "" if grant.place == "." else f", from folder {grant.place}"
        title = f"grant {grant.id}  {where[grant.scope]}{place}, mode {grant.mode} and more permissive ones"
        yield colorize(escape(title), "heading")
        yield from _rule_lines(grant)
        yield escape(f"  given {format_time(grant.at)} by {grant.by}, with call {grant.call_id}")
    if grants:
        yield "Take one back with: graph-agent policy revoke ID"
    elif not rules:
        yield "There are no rules, and nothing was allowed always."


def _rule_lines(grant: Grant) -> Iterator[str]:
    yield from (escape(f"  │ {rule}") for rule in grant.rules)


_EXITS = {"allow": 0, "ask": 3, "deny": 4}


def check_call(
    database: Path, tool: str, arguments: str, *, mode: str | None, workspace: str | None, as_json: bool
) -> None:
    """Print what policy says to the call; exit 0 allow, 3 ask, 4 deny.

    Raises:
        UsageError: the arguments are no JSON object, or not what the tool takes, or the folder is none.
        ConfigError: a setting is wrong.
    """
    given, folder = _object(arguments), _folder(workspace)
    settings = settings_at(folder, {"mode": mode})
    grants = applicable_grants(database, folder, of_threads=True)
    report = asyncio.run(report_on(tool, given, settings, folder, grants))
    if as_json:
        # These two are keys only where they say something: the others are what scripts go by.
        rare = ("problems", "allowed_in")
        print_json({key: value for key, value in asdict(report).items() if key not in rare or value})
    else:
        print_lines(list(map(escape, _lines(report))))
    raise typer.Exit(_EXITS[report.decision])


def show_policy(database: Path, mode: str | None, *, as_json: bool) -> None:
    """Print what judges, first what speaks first.

    Raises:
        ConfigError: a setting is wrong.
    """
    settings = settings_at(Path.cwd(), {"mode": mode})
    print_ignored_files(current_project())
    rules = effective_rules(settings, applicable_grants(database, Path.cwd()))
    if as_json:
        print_json({"mode": settings.mode, "rules": [asdict(rule) for rule in rules]})
        return
    print_lines([f"mode: {settings.mode}", ""])
    print_lines(format_table(("LIST", "FROM", "RULE"), [(one.list or "-", one.source, one.rule) for one in rules]))


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


def run_cases(file: str, *, as_json: bool) -> None:
    """Print every case that was decided otherwise than labelled, and the sums; exit 1 when one was looser.

    Raises:
        UsageError: the file cannot be read, or a line is no case.
    """
    scored, score = score_file(Path(file))
    if as_json:
        print_json({"cases": [asdict(one) for one in scored], "score": asdict(score)})
    else:
        print_lines(list(map(escape, _differences(scored))))
        print_lines(format_table(("FAMILY", "RIGHT", "STRICTER", "LOOSER"), _rows(score)))
    if score.looser:
        raise typer.Exit(1)


def _differences(scored: Sequence[Scored]) -> Iterator[str]:
    for one in scored:
        if not one.is_right:
            word = "LOOSER" if one.is_looser else "stricter"
            yield f"{word}: {one.id}: {one.decision}, expected {one.expected}; {one.rule}: {one.reason}"


def _rows(score: Score) -> list[tuple[str, ...]]:
    rows = [
        (name, *(str(counts[kind]) for kind in ("right", "stricter", "looser")))
        for name, counts in score.families.items()
    ]
    return [*rows, ("all", str(score.right), str(score.stricter), str(score.looser))]
