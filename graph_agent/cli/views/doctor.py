"""`doctor`: the checks of the installation, the backup of the database, and the steps of `--repair`."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer

from graph_agent.app.doctor import Check, RepairMessage, back_up, copy_database, run_checks
from graph_agent.cli.views.table import line_width, print_lines, print_result, print_text
from graph_agent.config.paths import runnable_hints
from graph_agent.wording import escape, format_count

__all__ = ["back_up_database", "copy_to_database", "format_check", "print_checks", "repair_installation"]

Repair = Callable[[Path, Mapping[str, str]], AsyncIterator[RepairMessage]]
_MARGIN = 19
"""Width of the mark and the name of a check."""


def print_checks(database: Path, *, as_json: bool, repairs: Sequence[RepairMessage] | None = None) -> None:
    """Run and print every check. Exit code 1 if an important one fails. The JSON also holds what was repaired."""
    checks = run_checks(database, os.environ)
    result: dict[str, Any] = {
        "checks": [{"name": one.name, "ok": one.ok, "detail": one.detail, "hint": one.hint} for one in checks]
    }
    if repairs is not None:
        steps = [{"name": one.step, "stage": one.stage, "detail": one.text} for one in repairs]
        result = {"repairs": steps, **result}
    print_result(result, (line for check in checks for line in format_check(check)), as_json=as_json)
    if any(check.matters and not check.ok for check in checks):
        raise typer.Exit(1)


def format_check(check: Check) -> list[str]:
    """The lines of one check with its hint, wrapped at the width of the terminal; in a pipe, not wrapped."""
    mark = "ok  " if check.ok else ("FAIL" if check.matters else "note")
    texts = [escape(runnable_hints(text)) for text in (check.detail, check.hint) if text]
    if (width := line_width()) is not None:
        texts = [
            line for text in texts for line in wrap(text, max(width - _MARGIN, 20), break_on_hyphens=False) or [""]
        ]
    first, *more = texts
    return [f"{mark}  {check.name:<12} {first}", *(f"{'':{_MARGIN}}{line}" for line in more)]


def back_up_database(database: Path, target: Path, *, as_json: bool) -> None:
    """Back up the database and print the size of the copy."""
    size = back_up(database, target)
    text = f"Backed up {database} to {target}: {size} bytes, verified."
    print_result({"file": str(target), "bytes": size}, text, as_json=as_json)


def copy_to_database(source: str, target: str, *, as_json: bool) -> None:
    """Copy a whole database and print what was copied."""
    done = asyncio.run(copy_database(source, target))
    missing = f" {format_count(done.missing, 'content')} had been lost before." if done.missing else ""
    text = (
        f"Copied {format_count(len(done.digests), 'thread')}: {format_count(done.rows, 'row')}, "
        f"{format_count(done.blobs, 'content')}. Each thread has the same digest in both databases.{missing} "
        "Continue them in one of the two only."
    )
    counts = {"rows": done.rows, "blobs": done.blobs, "missing_blobs": done.missing}
    print_result({"threads": dict(done.digests), **counts}, text, as_json=as_json)


def repair_installation(database: Path, repair: Repair, *, as_json: bool) -> None:
    """Repair, then run the checks. Exit code 1 if an important one still fails."""

    async def run_repair() -> list[RepairMessage]:
        steps = []
        async for one in repair(database, os.environ):
            steps.append(one)
            if not as_json:
                print_lines([f"{one.stage}  {one.step:<12} {escape(one.text)}"])
        return steps

    steps = asyncio.run(run_repair())
    if not steps and not as_json:
        print_text("Nothing to repair.")
    print_checks(database, as_json=as_json, repairs=steps)
