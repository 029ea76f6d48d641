"""`policy list` and `policy revoke`: the rules there are, what was allowed always, and what came of revoking."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph_agent.app.policing import effective_rules
from graph_agent.app.project import settings_at
from graph_agent.app.revoking import revoke_grant
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import colored, local_time, print_json, print_lines
from graph_agent.errors import NothingYet
from graph_agent.inspect import Reader
from graph_agent.ports import Grant

__all__ = ["grants_holding", "list_policy", "revoke"]


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
        print_lines(_lines(rules, grants))


def revoke(database: Path, text: str, *, as_json: bool) -> None:
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


def grants_holding(database: Path, workspace: Path, *, of_threads: bool = False) -> list[Grant]:
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


def _lines(rules: Sequence[dict[str, str]], grants: Sequence[Grant]) -> Iterator[str]:
    for rule in rules:
        yield escape(f"{rule['list']:<5}  {rule['rule']}  ({rule['source']})")
    if rules and grants:
        yield ""
    for grant in grants:
        where = {"thread": f"in thread {grant.thread_id}", "project": f"in {grant.workspace}", "user": "everywhere"}
        place = "" if grant.place == "." else f", from folder {grant.place}"
        title = f"grant {grant.id}  {where[grant.scope]}{place}, mode {grant.mode} and more permissive ones"
        yield colored(escape(title), "heading")
        yield from _rule_lines(grant)
        yield escape(f"  given {local_time(grant.at)} by {grant.by}, with call {grant.call_id}")
    if grants:
        yield "Take one back with: graph-agent policy revoke ID"
    elif not rules:
        yield "There are no rules, and nothing was allowed always."


def _rule_lines(grant: Grant) -> Iterator[str]:
    yield from (escape(f"  │ {rule}") for rule in grant.rules)
