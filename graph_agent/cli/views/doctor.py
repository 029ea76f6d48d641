"""`doctor`: the checks of the installation, the backup of the database, and the steps of `--repair`; `update`."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graph_agent.app.doctor import Check, back_up, copy_database, run_checks, run_update
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.table import print_lines, print_result, print_text
from graph_agent.config.paths import runnable_hints
from graph_agent.errors import UsageError
from graph_agent.wording import escape, format_count

if TYPE_CHECKING:
    from graph_agent.app.repair import RepairMessage

__all__ = [
    "back_up_database",
    "copy_to_database",
    "find_update",
    "format_check",
    "print_checks",
    "repair_installation",
    "update_program",
]

Repair = Callable[[Path, Mapping[str, str]], AsyncIterator["RepairMessage"]]
_MARGIN = 19
"""Width of the mark and the name of a check."""


def print_checks(database: Path, *, as_json: bool, repairs: "Sequence[RepairMessage] | None" = None) -> None:
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
    """The lines of one check with its hint."""
    mark = "ok  " if check.ok else ("FAIL" if check.matters else "note")
    texts = [escape(runnable_hints(text)) for text in (check.detail, check.hint) if text]
    first, *more = texts
    return [f"{mark}  {check.name:<12} {first}", *(f"{'':{_MARGIN}}{line}" for line in more)]


def back_up_database(database: Path, target: Path, *, as_json: bool) -> None:
    """Back up the database and print the size of the copy."""
    size = back_up(database, target)
    text = f"Backed up {database} to {target}: {size} bytes, verified."
    print_result({"file": str(target), "bytes": size}, text, as_json=as_json)


def copy_to_database(source: str, target: str, *, as_json: bool) -> None:
    """Copy a database and print what was copied."""
    done = asyncio.run(copy_database(source, target))
    missing = f" {format_count(done.missing, 'blob')} of the source had already been lost." if done.missing else ""
    parts = ((len(done.digests), "thread"), (done.rows, "row"), (done.blobs, "blob"))
    copied = ", ".join(format_count(count, noun) for count, noun in parts)
    lines = [
        f"Copied {copied}. Each thread has the same digest in both databases.{missing}",
        "Continue each thread in one of the two databases only.",
    ]
    counts = {"rows": done.rows, "blobs": done.blobs, "missing_blobs": done.missing}
    print_result({"threads": dict(done.digests), **counts}, lines, as_json=as_json)


def repair_installation(database: Path, repair: Repair, *, as_json: bool) -> None:
    """Repair, then run the checks. Exit code 1 if an important one still fails."""

    async def run_repair() -> "list[RepairMessage]":
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


_PACKAGE = "graph-agent"


def update_program(*, is_printed: bool, is_confirmed: bool, as_json: bool) -> None:
    """Say how this program was installed, and run what updates it that way. Exit code 1 if that fails.

    Raises:
        UsageError: the program that installed it is gone, or nobody can be asked.
    """
    installed = distribution(_PACKAGE)
    method, command = find_update(Path(sys.prefix), json.loads(installed.read_text("direct_url.json") or "{}"))
    facts = {"version": installed.version, "installed_with": method, "command": command}
    text = f"{_PACKAGE} {installed.version} was installed with {method}. To update it: {shlex.join(command)}"
    print_result(facts, text, as_json=as_json)
    if is_printed or as_json:
        return
    if not is_confirmed and not confirm("Run this?", hint="Use --yes to skip the question, or --print."):
        return
    if (code := run_update(command)) is None:
        raise UsageError(f"{command[0]} is not on your PATH. Run yourself: {shlex.join(command)}")
    if code:
        raise typer.Exit(1)


def find_update(prefix: Path, origin: Mapping[str, Any]) -> tuple[str, list[str]]:
    """How the program in this environment was installed, and the command that updates it.

    Args:
        origin: the package's `direct_url.json` (PEP 610); empty if it came from an index.
    """
    url = str(origin.get("url", ""))
    source = url.removeprefix("file://") if "dir_info" in origin else url
    if "vcs_info" in origin:
        wanted = origin["vcs_info"].get("requested_revision", "")
        source = f"{origin['vcs_info'].get('vcs', 'git')}+{url}{f'@{wanted}' if wanted else ''}"
    if origin.get("dir_info", {}).get("editable"):
        return "a checkout", ["git", "-C", source, "pull", "--ff-only"]
    if (prefix / "uv-receipt.toml").is_file():
        # The receipt knows the extras and the packages beside this one. A folder has the same version again.
        return "uv", ["uv", "tool", "upgrade", *(["--reinstall"] if "dir_info" in origin else []), _PACKAGE]
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx", ["pipx", "upgrade", _PACKAGE]
    return "pip", [sys.executable, "-m", "pip", "install", "--upgrade", source or _PACKAGE]
