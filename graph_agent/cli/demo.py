"""The `demo` command: what the program promises, shown on files that are gone afterwards."""

from typing import Annotated

import typer

__all__ = ["demo_command"]


def demo_command(
    yes: Annotated[bool, typer.Option("--yes", help="Ask nobody: answer the questions by itself.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the files of the demo where they are.")] = False,
) -> None:
    """Show in a minute, offline, on throwaway files: a question, kill -9 inside a call, its recovery, a rewind."""
    from graph_agent.cli.tour.play import play

    play(is_asking=not yes, is_kept=keep)
