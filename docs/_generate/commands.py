"""Renders docs/commands.md: what `--help` says, for every command there is."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from docs._generate.markdown import note
from graph_agent.cli.main import app

__all__ = ["page"]


def page() -> str:
    """Render the whole page."""
    sections = [line for path in _paths(typer.main.get_command(app), ()) for line in _section(path)]
    return "\n".join([note("graph_agent/cli"), "# Commands", "", *sections])


def _paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of each command, groups before what is in them."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


def _section(path: tuple[str, ...]) -> list[str]:
    shown = CliRunner().invoke(app, [*path, "--help"], prog_name="graph-agent", env={"COLUMNS": "100"})
    text = [line.rstrip() for line in shown.stdout.strip().splitlines()]
    return [f"## graph-agent {' '.join(path)}".rstrip(), "", "```text", *text, "```", ""]
