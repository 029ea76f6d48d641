"""What the `doctor` command prints."""

import os
from pathlib import Path

import typer

from graph_agent.app.health import Check, back_up, examine
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines

__all__ = ["copy_database", "tell_health"]


def tell_health(database: Path, *, as_json: bool) -> None:
    """Every check with its result; exit code 1 when one fails that matters."""
    checks = examine(database, os.environ)
    if as_json:
        shown = [{"name": one.name, "ok": one.ok, "detail": one.detail, "hint": one.hint} for one in checks]
        print_json({"checks": shown})
    else:
        print_lines(line for check in checks for line in _lines(check))
    if any(check.matters and not check.ok for check in checks):
        raise typer.Exit(1)


def copy_database(database: Path, target: Path, *, as_json: bool) -> None:
    """Copy the database and say where the copy is."""
    size = back_up(database, target)
    if as_json:
        print_json({"file": str(target), "bytes": size})
    else:
        print_lines([escape(f"{target}: a checked copy of {database}, {size} bytes")])


def _lines(check: Check) -> list[str]:
    mark = "ok  " if check.ok else ("FAIL" if check.matters else "note")
    hint = f"{'':16}{escape(check.hint)}"
    first = f"{mark}  {check.name:<10}{escape(check.detail)}"
    return [first, hint] if check.hint else [first]
