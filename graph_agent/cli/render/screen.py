"""The rich console everything is printed on: no markup, no highlighting, nothing cut."""

import shutil
import sys
from typing import TextIO

from rich.console import Console

from graph_agent.cli.plainness import is_plain, moves_cursor

__all__ = ["make_console"]


def make_console(stream: TextIO | None = None) -> Console:
    """A console that takes text literally; colours follow NO_COLOR and TERM, the width COLUMNS."""
    console = Console(
        file=stream or sys.stdout,
        force_interactive=False if is_plain() else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
    if not moves_cursor() and console.is_terminal:
        # Rich takes every dumb terminal for 80 columns wide.
        console.size = shutil.get_terminal_size()
    return console
