"""The rich console everything is printed on: no markup, no highlighting, nothing cut."""

import sys
from typing import TextIO

from rich.console import Console

from graph_agent.cli.plainness import is_plain

__all__ = ["make_console"]


def make_console(stream: TextIO | None = None) -> Console:
    """A console that takes text literally; colours follow NO_COLOR and TERM, the width COLUMNS."""
    return Console(
        file=stream or sys.stdout,
        force_interactive=False if is_plain() else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
