"""What the `doctor` command prints.

What `doctor --repair` prints: each step before it is done and after, then every check anew.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer

from graph_agent.app.doctor import Check, Said, back_up, examine
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import line_width, print_json, print_lines

__all__ = ["checks_json", "copy_database", "format_check", "is_healthy", "print_checks", "repair_installation"]

_MARGIN = 19
"""What mark and name take of a line."""


def print_checks(database: Path, *, as_json: bool) -> None:
    """Every check with its result; exit code 1 when one fails that matters."""
    checks = examine(database, os.environ)
    if as_json:
        print_json(checks_json(checks))
    else:
        print_lines(line for check in checks for line in format_check(check))
    if not is_healthy(checks):
        raise typer.Exit(1)


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """The object that scripts read."""
    shown = [{"name": one.name, "ok": one.ok, "detail": one.detail, "hint": one.hint} for one in checks]
    return {"checks": shown}


def is_healthy(checks: Sequence[Check]) -> bool:
    """Whether everything that matters works."""
    return not any(check.matters and not check.ok for check in checks)


def format_check(check: Check) -> list[str]:
    """What a person is shown of a check."""
    mark = "ok  " if check.ok else ("FAIL" if check.matters else "note")
    told = [*_folded(escape(check.detail)), *(_folded(escape(check.hint)) if check.hint else ())]
    return [f"{mark}  {check.name:<12} {told[0]}", *(f"{'':{_MARGIN}}{line}" for line in told[1:])]


def _folded(text: str) -> list[str]:
    """Between words where a screen is narrower; what is read by a program stays one line."""
    width = line_width()
    return [text] if width is None else wrap(text, max(width - _MARGIN, 20), break_on_hyphens=False) or [""]


def copy_database(database: Path, target: Path, *, as_json: bool) -> None:
    """Copy the database and say where the copy is."""
    size = back_up(database, target)
    if as_json:
        print_json({"file": str(target), "bytes": size})
    else:
        print_lines([escape(f"{target}: a checked copy of {database}, {size} bytes")])


Repair = Callable[[Path, Mapping[str, str]], AsyncIterator[Said]]


def repair_installation(database: Path, repair: Repair, *, as_json: bool) -> None:
    """Repair, then examine; exit code 1 when something that matters is still amiss."""
    said = asyncio.run(_told(database, repair, is_shown=not as_json))
    checks = examine(database, os.environ)
    if as_json:
        repairs = [{"name": one.step, "stage": one.stage, "detail": one.text} for one in said]
        print_json({"repairs": repairs, **checks_json(checks)})
    else:
        print_lines(() if said else ["nothing to repair"])
        print_lines(line for check in checks for line in format_check(check))
    if not is_healthy(checks):
        raise typer.Exit(1)


async def _told(database: Path, repair: Repair, *, is_shown: bool) -> list[Said]:
    said = []
    async for one in repair(database, os.environ):
        said.append(one)
        if is_shown:
            print_lines([f"{one.stage}  {one.step:<12} {escape(one.text)}"])
    return said
