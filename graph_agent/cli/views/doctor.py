"""`doctor`: the checks of the installation, the backup of the database, and the steps of `--repair`."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer

from graph_agent.app.doctor import Check, RepairMessage, back_up, run_checks
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import line_width, print_json, print_lines

__all__ = ["copy_database", "format_check", "print_checks", "repair_installation"]

Repair = Callable[[Path, Mapping[str, str]], AsyncIterator[RepairMessage]]
_MARGIN = 19
"""Width of the mark and the name of a check."""


def print_checks(database: Path, *, as_json: bool) -> None:
    """Run and print every check. Exit code 1 if an important one fails."""
    _print_checks(run_checks(database, os.environ), as_json=as_json)


def format_check(check: Check) -> list[str]:
    """The lines of one check, with its hint."""
    mark = "ok  " if check.ok else ("FAIL" if check.matters else "note")
    texts = (check.detail, check.hint) if check.hint else (check.detail,)
    first, *more = [line for text in texts for line in _wrap(escape(text))]
    return [f"{mark}  {check.name:<12} {first}", *(f"{'':{_MARGIN}}{line}" for line in more)]


def copy_database(database: Path, target: Path, *, as_json: bool) -> None:
    """Back up the database and print the size of the copy."""
    size = back_up(database, target)
    if as_json:
        print_json({"file": str(target), "bytes": size})
    else:
        print_lines([escape(f"Backed up {database} to {target}: {size} bytes, verified.")])


def repair_installation(database: Path, repair: Repair, *, as_json: bool) -> None:
    """Repair, then run the checks. Exit code 1 if an important one still fails."""
    steps = asyncio.run(_run_repair(database, repair, is_printing=not as_json))
    if as_json:
        repairs = [{"name": one.step, "stage": one.stage, "detail": one.text} for one in steps]
        _print_checks(run_checks(database, os.environ), as_json=True, details={"repairs": repairs})
    else:
        print_lines(() if steps else ["Nothing to repair."])
        _print_checks(run_checks(database, os.environ), as_json=False)


async def _run_repair(database: Path, repair: Repair, *, is_printing: bool) -> list[RepairMessage]:
    steps = []
    async for one in repair(database, os.environ):
        steps.append(one)
        if is_printing:
            print_lines([f"{one.stage}  {one.step:<12} {escape(one.text)}"])
    return steps


def _print_checks(checks: Sequence[Check], *, as_json: bool, details: Mapping[str, Any] | None = None) -> None:
    if as_json:
        shown = [{"name": one.name, "ok": one.ok, "detail": one.detail, "hint": one.hint} for one in checks]
        print_json({**(details or {}), "checks": shown})
    else:
        print_lines(line for check in checks for line in format_check(check))
    if any(check.matters and not check.ok for check in checks):
        raise typer.Exit(1)


def _wrap(text: str) -> list[str]:
    """Wrapped at the width of the terminal; in a pipe, one line."""
    width = line_width()
    return [text] if width is None else wrap(text, max(width - _MARGIN, 20), break_on_hyphens=False) or [""]
