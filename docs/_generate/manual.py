"""Renders docs/graph-agent.1, the manual page: what `--help` says, for every command there is."""

from docs._generate.commands import command_paths, help_lines
from graph_agent.cli.options import describe_exit_codes

__all__ = ["COLUMNS", "page"]

COLUMNS = 60
"""Of the narrowest terminal that shows the page without wrapping its lines."""
_INDENT = 2
_WIDTH = COLUMNS - _INDENT


def page() -> str:
    """Render the whole page."""
    lines = [
        '.\\" Written by `make docs` from graph_agent/cli.',
        ".TH GRAPH-AGENT 1",
        ".SH NAME",
        "graph-agent \\- a terminal coding agent you can kill",
        ".SH SYNOPSIS",
        *_verbatim([line.removeprefix("Usage:").strip() for line in help_lines((), _WIDTH)[:2]]),
    ]
    for path in command_paths():
        lines += [f'.SH "{_escape(" ".join(path).upper())}"' if path else ".SH DESCRIPTION"]
        lines += _verbatim(help_lines(path, _WIDTH)[2 if not path else 0 :])
    lines += [".SH EXIT STATUS", *map(_escape, describe_exit_codes().split("\n"))]
    return "\n".join([*lines, ""])


def _verbatim(lines: list[str]) -> list[str]:
    return [f".in {_INDENT}n", ".nf", *map(_escape, lines), ".fi"]


def _escape(line: str) -> str:
    text = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith(".") else text
