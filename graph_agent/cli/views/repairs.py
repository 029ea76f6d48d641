"""What `doctor --repair` prints: each step before it is done and after, then every check anew."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import typer

from graph_agent.app.check import Said
from graph_agent.app.health import examine
from graph_agent.cli.escape import escape
from graph_agent.cli.views.doctor import check_lines, checks_json, is_well
from graph_agent.cli.views.screen import print_json, print_lines

__all__ = ["mend"]

Repair = Callable[[Path, Mapping[str, str]], AsyncIterator[Said]]


def mend(database: Path, repair: Repair, *, as_json: bool) -> None:
    """Repair, then examine; exit code 1 when something that matters is still amiss."""
    said = asyncio.run(_told(database, repair, is_shown=not as_json))
    checks = examine(database, os.environ)
    if as_json:
        repairs = [{"name": one.step, "stage": one.stage, "detail": one.text} for one in said]
        print_json({"repairs": repairs, **checks_json(checks)})
    else:
        print_lines(() if said else ["nothing to repair"])
        print_lines(line for check in checks for line in check_lines(check))
    if not is_well(checks):
        raise typer.Exit(1)


async def _told(database: Path, repair: Repair, *, is_shown: bool) -> list[Said]:
    said = []
    async for one in repair(database, os.environ):
        said.append(one)
        if is_shown:
            print_lines([f"{one.stage}  {one.step:<12} {escape(one.text)}"])
    return said
