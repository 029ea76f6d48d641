"""Renders docs/commands.md: what `--help` says, for every command there is."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from docs._generate.markdown import note
from graph_agent.cli.main import app

__all__ = ["command_paths", "help_lines", "page"]


def page() -> str:
    """Render the whole page."""
    sections = [line for path in command_paths() for line in _section(path)]
    return "\n".join([note("graph_agent/cli"), "# Commands", "", *sections])


def command_paths() -> Iterator[tuple[str, ...]]:
    """The words of each command, groups before what is in them; the program itself has none."""

    def paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from paths(inner, (*path, name))

    return paths(typer.main.get_command(app), ())


def help_lines(path: tuple[str, ...], width: int | None = None) -> list[str]:
    """What `--help` says about a command, in lines of this width or of the usual one."""
    columns = {"COLUMNS": str(width or 100)}
    shown = CliRunner().invoke(app, [*path, "--help"], prog_name="graph-agent", env=columns, terminal_width=width)
    return [line.rstrip() for line in shown.stdout.strip().splitlines()]


def _section(path: tuple[str, ...]) -> list[str]:
    return [f"## graph-agent {' '.join(path)}".rstrip(), "", "```text", *help_lines(path), "```", ""]
